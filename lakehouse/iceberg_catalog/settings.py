"""Opening the Iceberg catalog that the settings name."""

from pathlib import Path

from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.errors import BadEnvironment
from sluice.settings import Settings


def open_iceberg_catalog(settings: Settings) -> IcebergCatalog:
    """Open the catalog.

    Raises:
        BadEnvironment: the file of its properties cannot be read, main has another name, or drivers run elsewhere.
    """
    if settings.sluice_main != "main":
        raise BadEnvironment(
            f"SLUICE_MAIN={settings.sluice_main}: readers of an Iceberg table read its branch `main`, "
            "which has no other name in the catalog `iceberg`"
        )
    if settings.spark_deploy_mode == "cluster" or settings.spark_connect_url:
        raise BadEnvironment(
            "with CATALOGUE=iceberg, a job reads its tables from a file beside the worker: "
            "use SPARK_DEPLOY_MODE=client, and leave SPARK_CONNECT_URL empty"
        )
    return open_iceberg(
        settings.sluice_catalog,
        settings.iceberg_type,
        settings.catalog_uri,
        settings.lake,
        {**file_io_properties(settings), **_read_properties(settings.iceberg_properties_file)},
        atomic=settings.iceberg_commits_many_tables == "atomic",
    )


def _read_properties(path: str) -> dict[str, str]:
    """Return the properties of a file: a line each, `key=value`; empty lines and those with # are left out."""
    if not path:
        return {}
    try:
        lines = [line.strip() for line in Path(path).read_text().splitlines()]
    except OSError as error:
        raise BadEnvironment(f"ICEBERG_PROPERTIES_FILE={path} cannot be read: {error.strerror}") from error
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    if wrong := [key for key, separator, _ in pairs if not separator]:
        raise BadEnvironment(f"{path}: a line has no `=`, after {wrong[0].split()[0][:30]!r}: write key=value")
    return {key.strip(): value.strip() for key, _, value in pairs}
