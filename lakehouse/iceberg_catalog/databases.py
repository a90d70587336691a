"""Databases of JDBC catalogs: their addresses, drivers and errors."""

import re
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

from sluice.errors import BadEnvironment, ServiceUnavailable, SluiceError

_LOCK_SECONDS = 60
"""Maximum wait for another process that writes to a database file, in seconds."""
_REMEDIES = {
    "readonly database": "give the worker's user write access to its file and folder",
    "unable to open database file": "give the worker's user write access to its file and folder",
    "disk is full": "free space on its disk",
}
"""Remedies by SQLite's error messages."""
_NO_RIGHT = "42501"
_REFUSED = re.compile(
    r'authentication failed|no pg_hba\.conf entry|no password supplied|permission denied|(database|role) ".*" does not'
)
"""PostgreSQL's messages for a wrong identity or a wrong name of a database."""


def database_properties(uri: str) -> dict[str, str]:
    """Return PyIceberg's properties for the database at an address; create a database that is a file.

    Raises:
        BadEnvironment: it is not a valid address, or its driver is not installed.
    """
    from sqlalchemy.engine import make_url  # noqa: PLC0415

    file = _sqlite_file(uri)
    if file is not None:
        _prepare_file(file)
        return {"uri": uri if "?" in uri else f"{uri}?timeout={_LOCK_SECONDS}"}
    uri = re.sub("^postgres(ql)?://", "postgresql+psycopg://", uri)
    try:
        make_url(uri).get_dialect().import_dbapi()
    except ImportError as error:
        raise BadEnvironment(
            f"the database's driver {error.name} is not installed: for PostgreSQL, install locks/postgresql.txt"
        ) from None
    except Exception:  # the text of any error may contain the password
        raise BadEnvironment(
            "ICEBERG_URI is not an address of a database: write postgresql://user:password@host:5432/database"
        ) from None
    return {"uri": uri, "pool_pre_ping": "true"}


def database_error(error: Exception) -> SluiceError | None:
    """Return the domain's error for an error of a database, or None for a mistake in a request."""
    cause = getattr(error, "orig", None) or error
    message = str(cause).strip().partition("\n")[0]
    if getattr(cause, "sqlstate", None) == _NO_RIGHT or _REFUSED.search(message):
        return BadEnvironment(f"the catalog's database does not accept this process: {message}")
    if type(error).__name__ in ("OperationalError", "InterfaceError"):
        return ServiceUnavailable(database_problem(message))
    if type(error).__name__ == "IntegrityError":
        return ServiceUnavailable(f"another process wrote the same row to the catalog's database first: {message}")
    return None


def database_problem(reason: str) -> str:
    """Return a one-line reason why a catalog's database does not answer, with a remedy if one is known."""
    why = reason.strip().partition("\n")[0]
    remedy = next((what for part, what in _REMEDIES.items() if part in why), "")
    return f"the catalog's database does not answer: {why}" + (f": {remedy}" if remedy else "")


def _sqlite_file(uri: str) -> Path | None:
    """Return the file of an address; None for another database, and for SQLite's own `file:` addresses."""
    path = urlsplit(uri).path[1:]
    return Path(path) if uri.startswith("sqlite:///") and not path.startswith("file:") else None


def _prepare_file(file: Path) -> None:
    """Create an SQLite file in WAL mode, so that readers continue while it is written. The file stores the mode."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA journal_mode=WAL")
