"""Files that hold environment variables: `.env`, and what the local stack says of itself."""

import json
from pathlib import Path

from dotenv import dotenv_values

from sluice.errors import BadEnvironment


def read_dotenv() -> dict[str, str]:
    """Return the variables of `.env` in the working directory that have a value.

    Raises:
        BadEnvironment: it cannot be read.
    """
    try:
        return {name: value for name, value in dotenv_values(".env").items() if value}
    except (OSError, ValueError) as error:  # whose text may quote the file
        raise BadEnvironment(f".env: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}") from None


def read_stack(file: Path) -> dict[str, str]:
    """Return the variables of the local stack; none where it does not run, or its file cannot be read."""
    try:
        stored = json.loads(file.read_text())["environment"]
        return {name: value for name, value in stored.items() if isinstance(value, str)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
