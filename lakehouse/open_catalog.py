"""Opening the catalog with the identity that a process has."""

from lakehouse.nessie.catalog import NessieCatalog
from sluice.secrets import read_secret
from sluice.settings import Settings


def open_catalog(settings: Settings) -> NessieCatalog:
    """Return the catalog as its publisher, where this process has that identity, else as its writer."""
    token = read_secret(settings.nessie_publisher_token_file, "NESSIE_PUBLISHER_TOKEN_FILE")
    token = token or read_secret(settings.nessie_writer_token_file, "NESSIE_WRITER_TOKEN_FILE")
    return NessieCatalog(settings.nessie_uri, settings.sluice_main, token)
