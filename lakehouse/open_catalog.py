"""The only code that chooses an implementation of the port for catalogs."""

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg_catalog.settings import open_iceberg_catalog
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.nessie.spark import unreachable_spark_properties
from sluice.secrets import read_secret
from sluice.setting_groups import CatalogSettings
from sluice.settings import Settings


def open_catalog(settings: Settings) -> BranchCatalog:
    """Return the catalog, opened as publisher if this process has that identity, else as writer."""
    if settings.catalog.is_iceberg:
        return open_iceberg_catalog(settings)

    def writer_token() -> str:
        return read_secret(settings.catalog.nessie_writer_token_file, "NESSIE_WRITER_TOKEN_FILE")

    token = read_secret(settings.catalog.nessie_publisher_token_file, "NESSIE_PUBLISHER_TOKEN_FILE") or writer_token()
    return NessieCatalog(settings.catalog.nessie_uri, settings.catalog.sluice_main, token, writer_token)


def unreachable_properties(spark_catalog: str) -> dict[str, str]:
    """Return the Spark configuration of an unreachable catalog of the same kind, for warm-up jobs."""
    return unreachable_spark_properties(spark_catalog)


def catalog_address(settings: Settings) -> str:
    """Return the address of the catalog for people, without a password."""
    uri = settings.catalog_uri if settings.catalog.is_iceberg else settings.catalog.nessie_uri
    scheme, separator, rest = (uri or settings.catalog.catalog).partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def token_files(settings: CatalogSettings) -> dict[str, str]:
    """Return the token files of the worker and of its Spark jobs, by the names of their settings.

    The result is empty for a catalog that jobs cannot access.
    """
    if settings.is_iceberg:
        return {}
    return {
        "NESSIE_PUBLISHER_TOKEN_FILE": settings.nessie_publisher_token_file,
        "NESSIE_WRITER_TOKEN_FILE": settings.nessie_writer_token_file,
    }
