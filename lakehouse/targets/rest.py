"""Register tables of main in another Iceberg REST catalog."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    TableAlreadyExistsError,
    UnauthorizedError,
)
from pyiceberg.table.metadata import TableMetadata
from requests.adapters import HTTPAdapter

from lakehouse.targets.mirror import MirroredTable
from sluice.errors import RegistrationRefused, ServiceUnavailable
from sluice.identifiers import name_elements
from sluice.registration.target_kinds import RestTarget

_TIMEOUT = (10, 60)
"""Time-outs in seconds: to connect, and between two parts of an answer."""


class _WithTimeout(HTTPAdapter):
    """Adapter that gives each request a time-out, since PyIceberg sets none."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        return super().send(request, *args, **{**options, "timeout": options.get("timeout") or _TIMEOUT})


class _Catalog(RestCatalog):
    def _create_session(self) -> requests.Session:
        session = super()._create_session()
        session.mount("https://", _WithTimeout())
        session.mount("http://", _WithTimeout())
        return session


class RestMirror:
    """The tables of a REST catalog."""

    def __init__(self, target: RestTarget) -> None:
        self._target = target
        self._host = urlsplit(target.uri).netloc
        with self._errors():
            self._catalog = _Catalog("target", **self._properties())

    def find(self, table: str) -> MirroredTable | None:
        """Return a table of the catalog, or None if it has no table of this name."""
        with self._errors():
            try:
                held = self._catalog.load_table(tuple(name_elements(table)))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            return MirroredTable(held.metadata_location)

    def create(self, table: str, location: str, metadata: TableMetadata) -> None:
        """Register a table that the catalog does not have, with its namespaces."""
        with self._errors():
            self._create_namespaces(table)
            try:
                self._register(table, location, overwrite=False)
            except TableAlreadyExistsError:
                raise ServiceUnavailable(f"{self._host}: {table} was created there meanwhile") from None

    def update(self, table: str, location: str, metadata: TableMetadata, present: MirroredTable) -> None:
        """Point a table at another metadata file, by one request if the catalog can, else by drop and register."""
        with self._errors():
            try:
                self._register(table, location, overwrite=True)
            except (TableAlreadyExistsError, RESTError) as error:
                if not _cannot_overwrite(error):
                    raise
                self._drop_and_register(table, location)

    def examine(self) -> str:
        """List the namespaces, which succeeds only with the right address and credentials."""
        with self._errors():
            return f"{self._host}: {len(self._catalog.list_namespaces())} namespaces"

    def _register(self, table: str, location: str, *, overwrite: bool) -> None:
        registered = self._catalog.register_table(tuple(name_elements(table)), location, overwrite=overwrite)
        if registered.metadata_location != location:
            raise RegistrationRefused(f"{self._host} registered {table} at another metadata file than requested")

    def _drop_and_register(self, table: str, location: str) -> None:
        """Replace an entry in a catalog that cannot overwrite it. Readers see no table for a moment."""
        if not self._target.drop_and_register:
            raise RegistrationRefused(
                f"{self._host} cannot register a table that it has already: use a catalog that supports `overwrite`, "
                "or allow `drop_and_register: true` for this target, which shows readers no table for a moment"
            )
        identifier = tuple(name_elements(table))
        present = self._catalog.load_table(identifier).metadata_location
        self._catalog.drop_table(identifier, purge_requested=False)
        try:
            self._register(table, location, overwrite=False)
        except Exception:
            with suppress(Exception):  # the first error is more informative
                self._register(table, present, overwrite=False)
            raise

    def _create_namespaces(self, table: str) -> None:
        elements = name_elements(table)
        for end in range(1, len(elements)):
            try:
                self._catalog.create_namespace(tuple(elements[:end]))
            except NamespaceAlreadyExistsError:
                continue

    def _properties(self) -> dict[str, str]:
        target, environment = self._target, os.environ
        given = {
            "uri": target.uri,
            "warehouse": target.warehouse,
            "scope": target.scope,
            "oauth2-server-uri": target.oauth2_server_uri,
            "token": target.token.read(environment) if target.token else "",
            "credential": target.credential.read(environment) if target.credential else "",
        }
        return {**target.properties, **{name: value for name, value in given.items() if value}}

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Map errors. Their texts may quote requests, so messages about the connection name only the host."""
        try:
            yield
        except (UnauthorizedError, ForbiddenError, OAuthError) as error:  # people often correct rights later
            raise ServiceUnavailable(f"{self._host} does not accept the credentials: {type(error).__name__}") from None
        except requests.RequestException as error:
            raise ServiceUnavailable(f"{self._host} does not answer: {type(error).__name__}") from None
        except CommitFailedException:
            raise ServiceUnavailable(f"{self._host}: another change came first") from None
        except NotImplementedError:
            raise RegistrationRefused(f"{self._host} cannot register tables") from None
        except RESTError as error:
            raise ServiceUnavailable(f"{self._host} refuses: {str(error)[:300]}") from None


def _cannot_overwrite(error: Exception) -> bool:
    """Return True if a catalog refused to overwrite an entry because it does not support or know the option."""
    return isinstance(error, TableAlreadyExistsError) or "unsupportedoperation" in str(error).casefold()
