"""Run the control worker and the Spark worker as two users of this system. For root, on Linux.

    sudo .venv/bin/python -m devstack.split_users

It creates the users, a folder with settings for each, and the lake's folder, to which both write. It checks that
neither user can reach the other's files, and prints the commands that start the workers. Run it again after a change of
the settings: it replaces the two `.env` files, and leaves the rest as it is. Exit codes: 0, or 2 with a message that
says what to change.
"""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from dotenv import dotenv_values

from devstack.errors import StackError
from devstack.split_users.set_up import ROOT, Request, set_up
from sluice.environment_files import DEFAULT_HOME, HOME, STACK_FILE
from sluice.errors import SluiceError

_FAILED = 2
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)


@app.command(help=__doc__)
def main(
    control: Annotated[str, typer.Option(help="The user of the control worker, which publishes.")] = "sluice-control",
    spark: Annotated[str, typer.Option(help="The user of the Spark worker, and of its jobs.")] = "sluice-spark",
    group: Annotated[str, typer.Option(help="The group of both, for the lake.")] = "sluice-lake",
    folder: Annotated[Path, typer.Option(help="The folder in which to create their folders.")] = Path(
        "/var/lib/sluice"
    ),
    env: Annotated[Path, typer.Option(help="The settings of this installation.")] = ROOT / ".env",
    python: Annotated[Path, typer.Option(help="The Python of the workers.")] = Path(sys.executable),
) -> None:
    try:
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise StackError("this creates users and changes owners of folders: run it as root (sudo), on Linux")
        given = _read_settings(env)
        commands = set_up(
            Request(control, spark, group, folder.absolute(), env.absolute(), given, python.absolute()), print
        )
    except (StackError, SluiceError, OSError) as error:
        print(f"split_users: {error}", file=sys.stderr)
        sys.exit(_FAILED)
    for role, command in commands.items():
        print(f"\n# Start the {role} worker, as root:\n{command}")
    print("\nEnd workers that run as another user: their jobs can read what that user can read.")


def _read_settings(env: Path) -> dict[str, str]:
    """Return the settings of a file, completed with those of the running local stack.

    The environment of the shell is not read, since the shell is an administrator's.
    """
    given = {name: value for name, value in dotenv_values(env).items() if value} if env.exists() else {}
    stack = Path(given.get(HOME, DEFAULT_HOME)) / STACK_FILE
    try:
        local = json.loads(stack.read_text())["environment"] if stack.exists() else {}
    except (ValueError, KeyError) as error:
        raise StackError(f"{stack} cannot be read: {error}") from error
    return {**local, **given}


if __name__ == "__main__":
    app()
