"""The jars that Spark needs, and where they go."""

from sluice.errors import BadEnvironment
from sluice.settings import Settings

_JARS = "jars"


def class_path(settings: Settings) -> list[str]:
    """Return the jars that set-up installed, by their real places: Iceberg with its Nessie catalog, S3's bundle."""
    return [*_installed(settings, "spark"), *_installed(settings, "s3")]


def added_jars(settings: Settings) -> list[str]:
    """Return the jars that settings add."""
    return [part for part in settings.spark_packages.split(",") if part.endswith(".jar")]


def added_coordinates(settings: Settings) -> list[str]:
    """Return the Maven coordinates that settings add: Spark resolves them when a job starts."""
    return [part for part in settings.spark_packages.split(",") if part and not part.endswith(".jar")]


def has_s3(settings: Settings) -> bool:
    """Return whether the jars for S3 were installed (`make s3`)."""
    return bool(_installed(settings, "s3"))


def require_s3(settings: Settings, *places: str) -> None:
    """Make sure that places on S3 can be reached.

    Raises:
        BadEnvironment: one is on S3, and the jars for it were not installed.
    """
    wanted = [place for place in places if place.startswith(("s3://", "s3a://"))]
    if wanted and not has_s3(settings):
        raise BadEnvironment(f"{wanted[0]} is on S3, and this worker has no jars for it: install them with `make s3`")


def _installed(settings: Settings, purpose: str) -> list[str]:
    folder = settings.sluice_home.absolute() / _JARS / purpose
    return sorted(str(jar.resolve()) for jar in folder.glob("*.jar"))
