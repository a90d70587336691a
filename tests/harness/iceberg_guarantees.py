"""A PyIceberg catalog with another guarantee."""

from pathlib import Path

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.sql_committer import SqlCommitter
from sluice.publishing.capabilities import Guarantee


def open_as(folder: Path, guarantee: Guarantee) -> IcebergCatalog:
    """Open a catalog in an SQLite file as if it had another guarantee."""
    catalog = open_iceberg("lake", "sql", f"sqlite:///{folder}/catalog.db", folder.as_uri(), {})
    branches = catalog._branches
    branches.committer = branches._log._committer = SqlCommitter(branches.tables.catalog, guarantee)
    return catalog
