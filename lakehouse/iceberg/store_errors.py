"""Explain errors of Arrow's S3 client, which PyIceberg uses to read and write the lake."""

import re

from sluice.errors import ServiceUnavailable
from sluice.store_trouble import credentials_expired, is_expiry

_ERROR = re.compile(
    r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))? during (?P<operation>\w+) operation: (?P<text>.*)"
)
_OBJECT = re.compile(r"key '(?P<key>.*?)' in bucket '(?P<bucket>[^']*)'")
_PASSING = (
    "SLOW_DOWN", "SERVICE_UNAVAILABLE", "INTERNAL_FAILURE", "THROTTLING", "REQUEST_TIMEOUT", "NETWORK_CONNECTION",
)  # fmt: skip
_LATER = (408, 429)
_BAD_REQUEST = 400


def explain_store_error(error: OSError) -> ServiceUnavailable | None:
    """Return the error for an unavailable store or expired credentials; None for any other error.

    The answer to a HEAD request has no body, so an expired token appears there as a 400 without a reason.
    """
    match = _ERROR.search(str(error).replace("\n", " "))
    if match is None or isinstance(error, FileNotFoundError):
        return None
    named = _OBJECT.search(str(error))
    what = f"s3://{named['bucket']}/{named['key']}" if named else "the lake"
    status = int(match["status"] or 0)
    reason = f"{match['operation']}: {match['text'].strip()[:200]}"
    is_silent = status == _BAD_REQUEST and match["operation"].startswith("Head")
    if is_expiry(match["text"]) or is_silent:
        return credentials_expired(what, f"HTTP status {status or _BAD_REQUEST} to {reason}")
    if match["code"] in _PASSING or status in _LATER or status >= 500:
        code = match["code"] if not status else f"HTTP status {status}"
        return ServiceUnavailable(f"the store of {what} does not answer: {code} to {reason}")
    return None
