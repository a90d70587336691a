"""Open the Iceberg catalog named by the settings."""

from pathlib import Path

from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.errors import BadEnvironment
from sluice.settings import Settings


def open_iceberg_catalog(settings: Settings) -> IcebergCatalog:
    """Open the catalog.

    Raises:
        BadEnvironment: its file of properties cannot be read, main has another name, or drivers run on other machines.
    """
    if settings.catalog.sluice_main != "main":
        raise BadEnvironment(
            f"SLUICE_MAIN={settings.catalog.sluice_main}: readers of an Iceberg table read its branch `main`, "
            f"which has no other name with CATALOG={settings.catalog.catalog}"
        )
    if settings.spark.spark_deploy_mode == "cluster" or settings.spark.spark_connect_url:
        raise BadEnvironment(
            f"with CATALOG={settings.catalog.catalog}, a job reads its tables from a file on the worker's machine: "
            "use SPARK_DEPLOY_MODE=client, and leave SPARK_CONNECT_URL empty"
        )
    properties = _read_properties(settings.catalog.iceberg_properties_file)
    if settings.catalog.catalog in ("rest", "hive") and not (settings.catalog_uri or properties.get("uri")):
        raise BadEnvironment(f"CATALOG={settings.catalog.catalog} needs the server's address: set ICEBERG_URI")
    return open_iceberg(
        settings.catalog.catalog_name,
        settings.catalog.catalog,
        settings.catalog_uri,
        settings.storage.lake,
        {**file_io_properties(settings.storage), **properties},
        several=settings.catalog.iceberg_commits_many_tables or None,
    )


def _read_properties(path: str) -> dict[str, str]:
    """Return the properties in a file with one `key=value` per line. Empty lines and lines with # are skipped."""
    if not path:
        return {}
    try:
        lines = [line.strip() for line in Path(path).read_text("utf-8-sig").splitlines()]
    except OSError as error:
        raise BadEnvironment(f"ICEBERG_PROPERTIES_FILE={path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadEnvironment(f"ICEBERG_PROPERTIES_FILE={path} is not text in UTF-8: write key=value lines") from None
    properties: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        key, separator, value = (part.strip() for part in line.partition("="))
        # The line is not shown, since it may contain a secret.
        if not separator or not key:
            raise BadEnvironment(f"{path}, line {number}: this is not a property: write key=value")
        if key in properties:
            raise BadEnvironment(f"{path}, line {number}: {key} occurs twice: write it once")
        properties[key] = value
    return properties
