"""The one place that chooses an implementation of the port for catalogs."""

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg_catalog.settings import open_iceberg_catalog
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.nessie.spark import unreachable_spark_properties
from sluice.secrets import read_secret
from sluice.settings import Settings


def open_catalog(settings: Settings) -> BranchCatalog:
    """Return the catalog, as its publisher where this process has that identity, else as its writer."""
    if settings.catalogue == "iceberg":
        return open_iceberg_catalog(settings)

    def writer_token() -> str:
        return read_secret(settings.nessie_writer_token_file, "NESSIE_WRITER_TOKEN_FILE")

    token = read_secret(settings.nessie_publisher_token_file, "NESSIE_PUBLISHER_TOKEN_FILE") or writer_token()
    return NessieCatalog(settings.nessie_uri, settings.sluice_main, token, writer_token)


def unreachable_properties(spark_catalog: str) -> dict[str, str]:
    """Return the Spark configuration of a catalog of the same kind that no server answers, for warm-up jobs."""
    return unreachable_spark_properties(spark_catalog)


def catalog_address(settings: Settings) -> str:
    """Return where the catalog is, for people: without the password that an address may hold."""
    uri = settings.nessie_uri if settings.catalogue == "nessie" else settings.catalog_uri
    scheme, separator, rest = (uri or settings.iceberg_type).partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def token_files(settings: Settings) -> dict[str, str]:
    """Return the files of the catalog's tokens by their settings: that of the worker, and that of its Spark jobs.

    None for a catalog that jobs have no access to.
    """
    if settings.catalogue == "iceberg":
        return {}
    return {
        "NESSIE_PUBLISHER_TOKEN_FILE": settings.nessie_publisher_token_file,
        "NESSIE_WRITER_TOKEN_FILE": settings.nessie_writer_token_file,
    }
