"""Record the commit log outside of itself, so that a dropped log is not silently replaced by a new one.

The log's UUID is a property of its namespace, which stays when the table is dropped. If the namespace was dropped too,
tables that runs published show that there was a log.
"""

import logging
from collections.abc import Mapping

from pyiceberg.exceptions import BadRequestError, ForbiddenError, NoSuchNamespaceError

from lakehouse.iceberg_catalog.tables import RESERVED, CatalogTables, is_of_sluice
from lakehouse.iceberg_catalog.transactions import CatalogTable
from sluice.errors import CatalogChanged

NAME = (RESERVED, "commits")
_UUID = "sluice.commits"
"""Property of the namespace with the UUID of the log."""
_LOCATION = "sluice.commits.location"
_BEGIN_AGAIN = "begin again"
"""Value that a person writes instead of a UUID to accept the present log, or a new one."""
_HOW = (
    "To begin again, without the records of loaded files, branches and quarantines, set the property "
    f"{_UUID} of the namespace {RESERVED} to '{_BEGIN_AGAIN}'"
)
_CANNOT = (BadRequestError, ForbiddenError, NoSuchNamespaceError, NotImplementedError)
"""Errors of catalogs that store no properties of namespaces, or forbid this process to change them."""
_log = logging.getLogger("sluice.catalog")


class KnownLog:
    """The record of the log in its namespace.

    Requires the tables of the catalog.
    """

    def __init__(self, tables: CatalogTables) -> None:
        self._tables, self._checked = tables, ""

    def check(self, table: CatalogTable) -> None:
        """Verify that a log is the one that this catalog had before; record it if none is recorded.

        Raises:
            CatalogChanged: the log is another one.
        """
        if table.uuid == self._checked:
            return
        remembered = self._properties().get(_UUID, _BEGIN_AGAIN)
        if remembered == _BEGIN_AGAIN:
            self._remember(table)
        elif remembered != table.uuid:
            raise CatalogChanged(
                f"{'.'.join(NAME)} is another commit log ({table.uuid}) than the one that this catalog had "
                f"({remembered}): nothing was changed. Register the newest metadata file of the earlier log. {_HOW}"
            )
        self._checked = table.uuid

    def check_missing(self) -> None:
        """Verify that a catalog without a log never had one, or that a person accepts a new one.

        Raises:
            CatalogChanged: the catalog had a log.
        """
        properties = self._properties()
        if properties.get(_UUID) == _BEGIN_AGAIN:
            return
        trace = _trace(properties) or self._published()
        if trace and self._tables.load_identifier(NAME) is None:  # otherwise another process created it meanwhile
            raise CatalogChanged(
                f"{'.'.join(NAME)}, the commit log, is missing, although {trace}: nothing was changed. Register its "
                f"newest metadata file under this name again: DROP TABLE without PURGE leaves it. {_HOW}"
            )

    def _published(self) -> str:
        names = [name for name, table in self._tables.load_all().items() if is_of_sluice(table)]
        return f"runs published {', '.join(sorted(names)[:3])}" if names else ""

    def _properties(self) -> Mapping[str, str]:
        try:
            return self._tables.catalog.load_namespace_properties(NAME[:1])
        except _CANNOT:
            return {}

    def _remember(self, table: CatalogTable) -> None:
        updates = {_UUID: table.uuid, _LOCATION: table.metadata.location}
        try:
            self._tables.catalog.update_namespace_properties(NAME[:1], updates=updates)
        except _CANNOT as error:
            _log.warning("the catalog does not remember the commit log outside it: %s", error)


def _trace(properties: Mapping[str, str]) -> str:
    if _UUID not in properties:
        return ""
    return f"its namespace remembers it ({properties[_UUID]}, in {properties.get(_LOCATION, 'an unknown location')})"
