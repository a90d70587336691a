"""Secrets: read from files, never passed on, and taken out of whatever is shown or kept."""

import re
from pathlib import Path

from sluice.errors import BadEnvironment

PRIVATE = ("SLACK_TOKEN", "NESSIE_PUBLISHER_TOKEN_FILE", "SLUICE_CODEC_KEY_FILE", "SLUICE_APPROVAL_KEY_FILE")
"""Variables that no Spark job gets to see."""
_HIDDEN = "[hidden]"
_SECRETS = re.compile(
    r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"  # a JSON web token
    r"|xox[a-z]-[A-Za-z0-9-]{8,}"  # a token of Slack
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # an access key of AWS
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # a user and password in an address
)
_NAMED = re.compile(r"(?i)((?:token|secret|password|passwd|secret[._-]?key)[\"']?\s*[=:]\s*[\"']?)([^\s\"',;]{6,})")


def redacted(text: str) -> str:
    """Return a text without what looks like a secret."""
    return _NAMED.sub(rf"\1{_HIDDEN}", _SECRETS.sub(_HIDDEN, text))


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
