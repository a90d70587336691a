"""Check that this Python can run Sluice, before the import of anything that it may not have.

Any Python 3 can read this module, also one that is too old for the others.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

OLDEST = (3, 10)
_PACKAGES = ("temporalio", "typer", "pydantic")
_OWN_PYTHON = ".venv/bin/python"
_ROOT = Path(__file__).resolve().parent.parent


def can_run(program: str) -> bool:
    """Return True if this Python can run a program of Sluice. Otherwise print which Python can."""
    problem = interpreter_problem(sys.version_info[:2], all(find_spec(package) for package in _PACKAGES))
    if problem:
        sys.stderr.write(f"{program}: {problem}\n")
    return not problem


def interpreter_problem(version: tuple, has_packages: bool) -> str:  # type: ignore[type-arg]  # `tuple[int, …]` is 3.9's
    """Return why a Python cannot run Sluice, and which one can; empty if it can."""
    if version >= OLDEST and has_packages:
        return ""
    if version < OLDEST:
        why = "this is Python {}.{}, and Sluice needs {}.{} or later".format(*version, *OLDEST)
    else:
        why = f"{sys.executable} does not have Sluice's packages"
    if (_ROOT / _OWN_PYTHON).exists():
        return f"{why}: run it by {_OWN_PYTHON}, or activate that by `source .venv/bin/activate`"
    return f"{why}: `make setup` installs {_OWN_PYTHON}, which can run it"
