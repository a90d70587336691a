"""Open an Iceberg catalog with PyIceberg."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from requests.adapters import HTTPAdapter, Retry

from lakehouse.iceberg_catalog.branches import BranchLog
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.databases import database_properties
from lakehouse.iceberg_catalog.errors import translate_opening_errors
from lakehouse.iceberg_catalog.job_tables import JobCatalogs
from lakehouse.iceberg_catalog.sql_committer import SqlCommitter
from lakehouse.iceberg_catalog.transactions import Committer, RestCommitter, SingleCommitter
from sluice.publishing.capabilities import Guarantee

_TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"
"""Endpoint for commits to several tables, as a REST server lists it."""
_READS = Retry(
    3,
    allowed_methods=("GET", "HEAD"),
    status_forcelist=(500, 502, 503, 504),
    backoff_factor=0.1,
    raise_on_status=False,
    respect_retry_after_header=False,
)
"""Retries of a request that changes nothing. Without them, one lost read repeats a whole activity."""
_GLUE_RETRIES = 3
_CREATED_MEANWHILE = ("IntegrityError", "ProgrammingError")
"""SQLAlchemy's errors for a table that exists already."""


def open_iceberg(
    name: str, kind: str, uri: str, warehouse: str, more: Mapping[str, str], *, several: Guarantee | None = None
) -> IcebergCatalog:
    """Open a catalog.

    Args:
        name: its name for Spark and PyIceberg. A JDBC catalog separates the tables of each name.
        kind: `sql`, `rest`, `glue` or `hive`.
        more: further properties, by the names that Spark and PyIceberg use.
        several: the known guarantee of a REST server for commits to several tables; None means the one that it
            declares.
    """
    properties = {"type": kind, "uri": uri, "warehouse": warehouse, **more}
    with translate_opening_errors(kind):
        if kind == "sql":
            properties |= database_properties(properties["uri"])
        if kind == "glue":
            properties |= _glue_properties(properties)
        catalog = load_pyiceberg(name, {key: value for key, value in properties.items() if value != ""})
    branches = BranchLog(catalog, _committer(catalog, several))
    return IcebergCatalog(branches, JobCatalogs(branches.tables, warehouse))


def load_pyiceberg(name: str, properties: Mapping[str, Any], tries: int = 3) -> Catalog:
    """Open a catalog with PyIceberg. Retry if another process created the tables of its database at the same time.

    The catalog repeats reads that a REST server does not answer.
    """
    try:
        catalog = load_catalog(name, **properties)
    except Exception as error:
        if tries == 1 or type(error).__name__ not in _CREATED_MEANWHILE:
            raise
        return load_pyiceberg(name, properties, tries - 1)
    if isinstance(catalog, RestCatalog):
        for adapter in catalog._session.adapters.values():
            if isinstance(adapter, HTTPAdapter):
                adapter.max_retries = _READS
    return catalog


def _committer(catalog: Catalog, several: Guarantee | None) -> Committer:
    if hasattr(catalog, "engine"):
        return SqlCommitter(catalog)
    if isinstance(catalog, RestCatalog):
        has_endpoint = any(str(each) == _TRANSACTIONS for each in catalog._supported_endpoints)
        several = several or ("checked" if has_endpoint else "one by one")
        if several != "one by one":
            return RestCommitter(catalog, several)
    return SingleCommitter(catalog)


def _glue_properties(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties of Glue: an address other than Amazon's, and the maximum number of tries of a request.

    PyIceberg passes the number to the SDK unconverted, so it must be an integer. It is small because activities are
    retried anyway.
    """
    endpoint = given.get("glue.endpoint") or given["uri"]
    return {"uri": "", "glue.endpoint": endpoint, "glue.max-retries": int(given.get("glue.max-retries", _GLUE_RETRIES))}
