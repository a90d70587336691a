"""Files that hold environment variables: `.env`, and what the local stack says of itself."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from sluice.errors import BadEnvironment

HOME = "SLUICE_HOME"
STACK_FILE = "stack.json"
DEFAULT_HOME = Path(__file__).resolve().parent.parent / ".sluice"
"""Beside the code, so that command line and worker find it from any folder."""


def given_environment() -> dict[str, str]:
    """Return the variables that a person sets: those of the environment and of `.env`; the first of them wins.

    Raises:
        BadEnvironment: `.env` cannot be read.
    """
    return {**_read_dotenv(), **{key: value for key, value in os.environ.items() if value}}


def stack_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the local stack of the home that these variables name; none if it is down."""
    return _read_stack(Path(given.get(HOME, DEFAULT_HOME)) / STACK_FILE)


def _read_dotenv() -> dict[str, str]:
    """Return the variables of `.env` in the working directory that have a value.

    Raises:
        BadEnvironment: it cannot be read.
    """
    try:
        return {name: value for name, value in dotenv_values(".env").items() if value}
    except (OSError, ValueError) as error:  # whose text may quote the file
        raise BadEnvironment(f".env: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}") from None


def _read_stack(file: Path) -> dict[str, str]:
    """Return the variables of the local stack; none where it does not run, or its file cannot be read."""
    try:
        stored = json.loads(file.read_text())["environment"]
        return {name: value for name, value in stored.items() if isinstance(value, str)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
