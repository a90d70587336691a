"""Amazon's S3 client, for features that obstore lacks: tags, moves, and keys that obstore rejects."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakehouse.source_files.listing import unreadable
from sluice.errors import ServiceUnavailable
from sluice.store_trouble import credentials_expired, is_expiry

_BUSY = (
    *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling", "ThrottlingException"),
    *("RequestLimitExceeded", "OperationAborted", "ConditionalRequestConflict", "500", "502", "503", "504"),
)
"""Error codes of a store that requires a later retry."""


def store_endpoint() -> str | None:
    """Return the URL of the store; None means Amazon's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def open_client() -> Any:
    """Open a client with the credentials and the endpoint of the environment."""
    import botocore.session  # noqa: PLC0415  # slow to import, and few landing zones need it
    from botocore.config import Config  # noqa: PLC0415

    endpoint = store_endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    config = Config(
        connect_timeout=10,
        read_timeout=300,  # the store may copy a part meanwhile
        max_pool_connections=32,
        retries={"mode": "standard", "total_max_attempts": 4},
        request_checksum_calculation="when_required",
        s3={"addressing_style": "path"} if endpoint else {},
    )
    session = botocore.session.get_session()
    return session.create_client("s3", region_name=region, endpoint_url=endpoint, config=config)


def error_code(error: BaseException) -> str:
    """Return the code of an error of the store; empty for any other error."""
    response = getattr(error, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, dict) and "Error" in response else ""


@contextmanager
def map_passing_errors(path: str) -> Iterator[None]:
    """Map the errors of a store that does not answer, or requires a later retry. Other errors pass unchanged.

    Raises:
        ServiceUnavailable: the store does not answer now.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        if isinstance(error, ClientError) and error_code(error) not in _BUSY:
            raise
        raise ServiceUnavailable(f"the store of {path} does not answer: {error}") from error


def list_keys(bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
    """List the objects of a bucket below a prefix, with any keys, as the store describes them.

    Args:
        bucket: its URL.

    Raises:
        InvalidInput: the store refuses.
        CredentialsExpired: it refuses because the credentials expired.
        ServiceUnavailable: it does not answer.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415

    path = f"{bucket}/{prefix}"
    pages = open_client().get_paginator("list_objects_v2").paginate(Bucket=bucket.split("://", 1)[1], Prefix=prefix)
    try:
        with map_passing_errors(path):
            for page in pages:
                yield from page.get("Contents", [])
    except ClientError as error:
        if is_expiry(str(error)):
            raise credentials_expired(path, error_code(error)) from error
        raise unreadable(path, error_code(error)) from error
