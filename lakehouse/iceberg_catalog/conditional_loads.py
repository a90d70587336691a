"""Conditional loads of a REST catalog's tables: the server sends no metadata for an unchanged table.

Source: Iceberg's REST specification, `loadTable`. `ETag` names one version of a table's metadata, and the server
answers 304 to a request that names it in `If-None-Match`. A server without `ETag` sends the metadata each time.
"""

import time

import requests
from pyiceberg.catalog.rest import Endpoints, RestCatalog, TableResponse
from requests import Response

from lakehouse.iceberg_catalog.transactions import CatalogTable

_MOST = 2_000
"""Maximum number of cached tables."""
_PAUSES = (0.1, 0.4)
"""Pauses before a load is repeated after its connection broke, in seconds.

An observation of main loads every table: without a repeat, one lost connection would fail all of it."""


class ConditionalLoads:
    """Loader of a REST catalog's tables, with a cache."""

    def __init__(self, catalog: RestCatalog) -> None:
        self._catalog = catalog
        self._known: dict[tuple[str, ...], tuple[str, CatalogTable]] = {}

    def load(self, identifier: tuple[str, ...]) -> CatalogTable:
        """Return the present state of a table.

        PyIceberg handles any answer other than a table or 304: it repeats the request, renews tokens, and raises
        errors.
        """
        etag, known = self._known.get(identifier, ("", None))
        answer = self._ask(identifier, etag)
        if answer.status_code == 304 and known is not None:
            return known
        if answer.status_code != 200:
            table = self._catalog.load_table(identifier)
            return CatalogTable(identifier, table.metadata, table.metadata_location)
        loaded = TableResponse.model_validate_json(answer.text)
        table = CatalogTable(identifier, loaded.metadata, loaded.metadata_location or "")
        self._remember(answer.headers.get("ETag", ""), table)
        return table

    def _ask(self, identifier: tuple[str, ...], etag: str) -> Response:
        path = self._catalog._split_identifier_for_path(identifier)
        url = self._catalog.url(Endpoints.load_table, prefixed=True, **path)
        headers = {"If-None-Match": etag} if etag else {}
        for pause in _PAUSES:
            try:
                return self._catalog._session.get(url, headers=headers)
            except requests.Timeout:  # a repeat would take as long again
                raise
            except requests.ConnectionError:
                time.sleep(pause)
        return self._catalog._session.get(url, headers=headers)

    def _remember(self, etag: str, table: CatalogTable) -> None:
        self._known.pop(table.identifier, None)
        if etag:
            self._known[table.identifier] = (etag, table)
        while len(self._known) > _MOST:
            self._known.pop(next(iter(self._known)), None)
