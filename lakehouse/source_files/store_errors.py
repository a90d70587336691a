"""Map errors of obstore's client to one-line messages that stay the same while a problem lasts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.source_files.listing import unreadable
from sluice.errors import ServiceUnavailable
from sluice.store_trouble import credentials_expired, is_expiry

_REFUSED = re.compile(r"status code: 4(?!08|29)\d\d")
_SILENT_HEAD = re.compile(r"performing HEAD .*status code: 400 ")
"""An answer to a HEAD request has no body, so an expired token appears there as a 400 without a reason."""
_TIMING = re.compile(r" in [\d.]+(?:ns|µs|ms|s)\b|, after \d+ retries|, (?:max_retries|retry_timeout): \w+")
"""Parts of an error that differ each time. With them, each listing of a landing zone would notify people again."""
_TAG = re.compile(r"<(Code|Message)>([^<]*)</")
_WIDTH = 300


@contextmanager
def map_store_errors(path: str) -> Iterator[None]:
    """Map errors of the store: refusals are final, other errors are retried.

    Raises:
        InvalidInput: the store refuses.
        CredentialsExpired: it refuses because the credentials expired.
        ServiceUnavailable: it does not answer, or requires a later retry.
    """
    from obstore import exceptions  # noqa: PLC0415  # only sources in a store need it

    refusals = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, exceptions.InvalidPathError)
    try:
        yield
    except (exceptions.BaseError, ValueError) as error:
        text = str(error)
        if is_expiry(text) or _SILENT_HEAD.search(text):
            raise credentials_expired(path, _reason(text)) from error
        if isinstance(error, (*refusals, ValueError)) or _REFUSED.search(text):
            raise unreadable(path, _reason(text)) from error
        raise ServiceUnavailable(f"the store of {path} does not answer: {_reason(text)}") from error


def _reason(text: str) -> str:
    """Return the store's own reason if it has one; else the first line of the client's error."""
    tags = dict(_TAG.findall(text))
    if tags.get("Code"):
        return f"{tags['Code']}: {tags.get('Message') or 'without a message'}"[:_WIDTH]
    first = (text.strip().splitlines() or ["without a message"])[0]
    return _TIMING.sub("", first)[:_WIDTH]
