"""Map errors of PyIceberg and its drivers to the domain's errors."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import requests
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitStateUnknownException,
    ForbiddenError,
    OAuthError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)

from lakehouse.iceberg_catalog.databases import database_error
from lakehouse.iceberg_catalog.transactions import CommitConflict
from sluice.errors import BadEnvironment, CatalogRefused, ServiceUnavailable, SluiceError
from sluice.redaction import redacted

_NOT_NOW = (ServerError, ServiceUnavailableError, TooManyRequestsError, CommitStateUnknownException)
_IDENTITY = re.compile("AccessDenied|UnrecognizedClient|Signature|Token|Credential|AuthFailure|NoRegion|ProfileNot")
"""Parts of AWS error codes and SDK error names that indicate a wrong identity."""
_REFUSALS = ("InvalidInputException", "ValidationException", "ParamValidationError", "ResourceNumberLimitExceeded")
_ABSENT = re.compile(
    r"database is locked|SQLITE_BUSY|ServiceUnavailableException|ServiceFailureException|CommitStateUnknownException"
    r"|Failed to (?:connect|execute) .*(?:refused|timed out)|UncheckedSQLException"
)
"""Messages of Iceberg's Java clients about a catalog that is unreachable, is starting, or cannot serve."""


@contextmanager
def translate_catalog_errors() -> Iterator[None]:
    """Translate errors of the lower layers to the domain's errors."""
    try:
        yield
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ServiceUnavailable(
            "the Iceberg catalog does not answer; is it running, and is ICEBERG_URI right?"
        ) from error
    except (UnauthorizedError, ForbiddenError, OAuthError, AuthorizationExpiredError) as error:
        raise BadEnvironment(f"the Iceberg catalog does not accept the identity of this process: {error}") from error
    except _NOT_NOW as error:
        raise ServiceUnavailable(f"the Iceberg catalog cannot serve now: {error}") from error
    except BadRequestError as error:
        raise CatalogRefused(f"the Iceberg catalog refuses: {error}") from error
    except CommitConflict as error:
        raise ServiceUnavailable(f"another program changed the catalog meanwhile: {error}") from error
    except Exception as error:
        translated = _of_driver(error)
        if translated is None:
            raise
        raise translated from error


def _of_driver(error: Exception) -> SluiceError | None:
    """Return the domain's error for an error of a driver, or None for any other error.

    Modules are compared by name, since a driver may not be installed.
    """
    module, name = type(error).__module__, type(error).__name__
    if module.startswith("sqlalchemy"):
        return database_error(error)
    if module.startswith("botocore"):
        return _of_glue(error, name)
    return None


def _of_glue(error: Exception, name: str) -> SluiceError:
    answer: dict[str, str] = getattr(error, "response", {}).get("Error", {})
    code, message = answer.get("Code", name), answer.get("Message") or str(error)
    if _IDENTITY.search(code):
        return BadEnvironment(f"Glue does not accept the identity or the region of this process: {code}: {message}")
    if code.startswith(_REFUSALS):
        return CatalogRefused(f"Glue refuses: {code}: {message}")
    return ServiceUnavailable(f"Glue cannot serve now: {code}: {message}")


@contextmanager
def translate_opening_errors(kind: str) -> Iterator[None]:
    """Translate any error while a catalog is opened to the domain's errors: a wrong setting can cause many kinds.

    Args:
        kind: the kind of the catalog, as in `CATALOG`.
    """
    try:
        with translate_catalog_errors():
            yield
    except SluiceError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {redacted((str(error).splitlines() or [''])[0])}"
        raise BadEnvironment(
            f"the catalog of CATALOG={kind} cannot be opened: {why}: check "
            "ICEBERG_URI and ICEBERG_PROPERTIES_FILE (docs/catalogs.md)"
        ) from error


def explain_absence(lines: Iterable[str]) -> str | None:
    """Return a description of the catalog's outage if the output of a job reports one, else None."""
    absent = next((line.strip() for line in lines if _ABSENT.search(line)), None)
    return f"the Iceberg catalog was unavailable to the job: {absent[:500]}" if absent else None
