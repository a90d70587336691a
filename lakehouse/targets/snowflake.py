"""Register tables of main in Snowflake with its connector: create once, then refresh to a metadata file."""

import importlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pyiceberg.table.metadata import TableMetadata

from lakehouse.targets.mirror import MirroredTable
from sluice.errors import BadEnvironment, RegistrationRefused, ServiceUnavailable
from sluice.identifiers import name_elements
from sluice.registration.target_kinds import SnowflakeTarget

_NO_SUCH_OBJECT = 2003
"""Snowflake's error number for an object that does not exist, or that the role may not see."""
_TIMEOUT = 120
"""Time-out of a login and of a statement, in seconds."""


class Cursor(Protocol):
    """The part of a cursor of Snowflake's connector that is used here."""

    def execute(self, command: str, params: Sequence[object] | None = None) -> Any:
        """Run one statement."""

    def fetchone(self) -> Any:
        """Return the next row."""

    def close(self) -> Any:
        """Close the cursor."""


class SnowflakeMirror:
    """The tables of a Snowflake database with an external volume and a catalog integration for object stores."""

    def __init__(self, target: SnowflakeTarget) -> None:
        self._target = target
        try:
            self._connector = importlib.import_module("snowflake.connector")
        except ImportError:
            raise BadEnvironment(
                "the library for Snowflake is not installed: install `locks/snowflake.txt` into the environment of "
                "each worker (docs/after-publish.md)"
            ) from None

    def find(self, table: str) -> MirroredTable | None:
        """Return a table of Snowflake, or None if it has no table of this name."""
        with self._cursor() as cursor:
            try:
                cursor.execute("SELECT SYSTEM$GET_ICEBERG_TABLE_INFORMATION(%s)", [self._name(table)])
            except self._connector.errors.ProgrammingError as error:
                if error.errno == _NO_SUCH_OBJECT:
                    return None
                raise
            answer = cursor.fetchone()
        return MirroredTable(self._location(answer))

    def create(self, table: str, location: str, metadata: TableMetadata) -> None:
        """Create an Iceberg table from a metadata file. If it exists by now, the next registration updates it."""
        with self._cursor() as cursor:
            cursor.execute(
                f"CREATE ICEBERG TABLE IF NOT EXISTS {self._name(table)} "
                f"EXTERNAL_VOLUME = {_quoted(self._target.external_volume)} "
                f"CATALOG = {_quoted(self._target.catalog_integration)} "
                f"METADATA_FILE_PATH = {_literal(self._path(location))}"
            )

    def update(self, table: str, location: str, metadata: TableMetadata, present: MirroredTable) -> None:
        """Refresh a table to a metadata file."""
        with self._cursor() as cursor:
            cursor.execute(f"ALTER ICEBERG TABLE {self._name(table)} REFRESH {_literal(self._path(location))}")

    def examine(self) -> str:
        """Log in and describe the database, which succeeds only with the right account, user and role."""
        with self._cursor() as cursor:
            cursor.execute(f"DESCRIBE DATABASE {_quoted(self._target.database)}")
        return f"Snowflake {self._target.account}, database {self._target.database}"

    def _name(self, table: str) -> str:
        """Return a table's name in Snowflake, in capital letters so that queries need no quotes."""
        parts = (part.upper() for part in name_elements(table))
        return ".".join(map(_quoted, (self._target.database, *parts)))

    def _location(self, row: Any) -> str:
        """Return the complete metadata location that Snowflake states; empty if it states none."""
        try:
            location = str(json.loads(row[0]).get("metadataLocation") or "")
        except (TypeError, ValueError, IndexError, AttributeError):
            return ""
        if location and "://" not in location:
            return f"{self._target.volume_location.rstrip('/')}/{location.lstrip('/')}"
        return location

    def _path(self, location: str) -> str:
        """Return a metadata file's path relative to the base of the external volume.

        Raises:
            RegistrationRefused: the file is not below that base.
        """
        base = self._target.volume_location.rstrip("/") + "/"
        if not location.startswith(base):
            raise RegistrationRefused(f"{location} does not lie under {base}, the `volume_location` of the target")
        return location[len(base) :]

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        """Yield a cursor of a new connection; map errors. Their texts contain statements, but no credentials."""
        target, errors = self._target, self._connector.errors
        secret = target.private_key.read(os.environ) if target.private_key else ""
        try:
            connection = self._connector.connect(
                account=target.account,
                user=target.user,
                role=target.role or None,
                warehouse=target.warehouse or None,
                database=target.database,
                login_timeout=_TIMEOUT,
                network_timeout=_TIMEOUT,
                **_credential(secret, target),
            )
            try:
                cursor: Cursor = connection.cursor()
                try:
                    yield cursor
                finally:
                    cursor.close()
            finally:
                connection.close()
        except errors.Error as error:
            raise ServiceUnavailable(f"Snowflake refuses: {str(error)[:300]}") from None
        except OSError as error:
            raise ServiceUnavailable(f"Snowflake does not answer: {type(error).__name__}") from None


def _credential(private_key: str, target: SnowflakeTarget) -> dict[str, Any]:
    if private_key:
        return {"private_key": _der(private_key)}
    assert target.token
    return {"authenticator": "programmatic_access_token", "token": target.token.read(os.environ)}


def _der(text: str) -> bytes:
    """Convert a private key from PEM to the connector's format.

    Raises:
        BadEnvironment: it is no such key. The message does not quote it.
    """
    serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
    try:
        key = serialization.load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError):
        raise BadEnvironment("the private key for Snowflake is not an unencrypted key in PEM (PKCS 8)") from None
    der: bytes = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return der


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
