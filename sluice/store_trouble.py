"""Object stores in trouble: what their answers mean, and the sentence that people read."""

from sluice.errors import CredentialsExpired

_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "token has expired", "token included in the request is expired")
"""Codes and messages of S3 and STS for temporary credentials that are too old."""


def is_expiry(text: str) -> bool:
    """Return whether an error of a store is about credentials that expired."""
    return any(each in text for each in _EXPIRED)


def credentials_expired(what: str, reason: str) -> CredentialsExpired:
    """Return the error for a store that refuses credentials because they are too old."""
    return CredentialsExpired(
        f"{what} cannot be read or written: the store's credentials have expired ({reason}): renew them, and start "
        "the worker again if it has them from its environment"
    )
