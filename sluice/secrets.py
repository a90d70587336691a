"""Secrets: read from files, and never passed on. `sluice/redaction.py` takes them out of what is shown."""

from pathlib import Path

from sluice.errors import BadEnvironment

PRIVATE = ("SLACK_TOKEN", "NESSIE_PUBLISHER_TOKEN_FILE", "SLUICE_CODEC_KEY_FILE", "SLUICE_APPROVAL_KEY_FILE")
"""Variables that no Spark job gets to see."""


def read_secret(file: str, variable: str) -> str:
    """Return the secret in a file, or nothing where no file is named.

    Raises:
        BadEnvironment: the file cannot be read, or holds nothing.
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
