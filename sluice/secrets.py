"""Read secrets from files. They are never passed on, and `sluice/redaction.py` removes them from shown texts."""

from pathlib import Path

from sluice.errors import BadEnvironment

PRIVATE = (
    "SLACK_TOKEN",
    "SLACK_SIGNING_SECRET",
    "NESSIE_PUBLISHER_TOKEN_FILE",
    "SLUICE_CODEC_KEY_FILE",
    "SLUICE_APPROVAL_KEY_FILE",
)
"""Environment variables that no Spark job receives."""


def read_secret(file: str, variable: str) -> str:
    """Return the secret in a file, or an empty string if no file is named.

    Raises:
        BadEnvironment: the file cannot be read, or is empty.
    """
    if not file:
        return ""
    try:
        secret = Path(file).expanduser().read_text().strip()
    except (OSError, RuntimeError) as error:
        raise BadEnvironment(f"{variable}={file}: {getattr(error, 'strerror', None) or error}") from error
    if not secret:
        raise BadEnvironment(f"{variable}={file}: the file is empty")
    return secret
