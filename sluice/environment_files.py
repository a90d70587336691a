"""Read environment variables from `.env` and from the file in which the local stack describes itself."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from sluice.errors import BadEnvironment

HOME = "SLUICE_HOME"
STACK_FILE = "stack.json"
DEFAULT_HOME = Path(__file__).resolve().parent.parent / ".sluice"
"""Default home: a folder next to the code, so that command line and worker find it from any folder."""


def given_environment() -> dict[str, str]:
    """Return the variables of the process's environment and of `.env`. The environment wins.

    Raises:
        BadEnvironment: `.env` cannot be read.
    """
    return {**_read_dotenv(), **{key: value for key, value in os.environ.items() if value}}


def stack_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the local stack, or none if it is down.

    Args:
        given: variables that may name the home of the stack.
    """
    return _read_stack(Path(given.get(HOME, DEFAULT_HOME)) / STACK_FILE)


def _read_dotenv() -> dict[str, str]:
    """Return the variables of `.env` in the working directory that have a value.

    Raises:
        BadEnvironment: the file cannot be read.
    """
    try:
        if not Path(".env").exists():
            return {}
        from dotenv import dotenv_values  # noqa: PLC0415  # a command without `.env` starts sooner without this import

        return {name: value for name, value in dotenv_values(".env").items() if value}
    except (OSError, ValueError) as error:  # the text of the error may quote the file
        raise BadEnvironment(f".env: {getattr(error, 'strerror', None) or 'it is not text in UTF-8'}") from None


def _read_stack(file: Path) -> dict[str, str]:
    """Return the variables of the local stack, or none if it does not run or its file cannot be read."""
    try:
        stored = json.loads(file.read_text())["environment"]
        return {name: value for name, value in stored.items() if isinstance(value, str)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def read_environment() -> dict[str, str]:
    """Read the variables of the environment, of `.env` and of the local stack. The first of these sources wins.

    Raises:
        BadEnvironment: `.env` cannot be read.
    """
    given = given_environment()
    return {**stack_environment(given), **given}
