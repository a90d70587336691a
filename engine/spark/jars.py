"""The jars that Spark needs: those that set-up installed, and those that settings add."""

from sluice.errors import BadEnvironment
from sluice.setting_groups import SparkSettings, StorageSettings

_JARS = "jars"


def class_path(settings: StorageSettings) -> list[str]:
    """Return the resolved paths of the jars that set-up installed: Iceberg with its catalogs, and the S3 bundle."""
    return [*_installed(settings, "spark"), *_installed(settings, "s3")]


def added_jars(settings: SparkSettings) -> list[str]:
    """Return the jars that settings add."""
    return [part for part in settings.spark_packages.split(",") if part.endswith(".jar")]


def added_coordinates(settings: SparkSettings) -> list[str]:
    """Return the Maven coordinates that settings add. Spark resolves them when a job starts."""
    return [part for part in settings.spark_packages.split(",") if part and not part.endswith(".jar")]


def has_s3(settings: StorageSettings) -> bool:
    """Return True if the jars for S3 are installed (`make s3`)."""
    return bool(_installed(settings, "s3"))


def require_s3(settings: StorageSettings, *paths: str) -> None:
    """Check that Spark can read and write paths on S3.

    Raises:
        BadEnvironment: a path is on S3, and the jars for S3 are not installed.
    """
    on_s3 = [path for path in paths if path.startswith(("s3://", "s3a://"))]
    if on_s3 and not has_s3(settings):
        raise BadEnvironment(f"{on_s3[0]} is on S3, but this worker has no jars for it: install them with `make s3`")


def _installed(settings: StorageSettings, purpose: str) -> list[str]:
    folder = settings.sluice_home.absolute() / _JARS / purpose
    return sorted(str(jar.resolve()) for jar in folder.glob("*.jar"))
