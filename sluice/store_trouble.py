"""Recognise expired credentials of object stores, and describe them to people."""

from sluice.errors import CredentialsExpired

_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "token has expired", "token included in the request is expired")
"""Codes and messages of S3 and STS about expired temporary credentials."""


def is_expiry(text: str) -> bool:
    """Return True if an error of a store is about expired credentials."""
    return any(each in text for each in _EXPIRED)


def credentials_expired(what: str, reason: str) -> CredentialsExpired:
    """Return the error for a store that refuses expired credentials."""
    return CredentialsExpired(
        f"{what} cannot be read or written: the store's credentials have expired ({reason}): renew them, and start "
        "the worker again if it has them from its environment"
    )
