"""The command that starts this command line, for commands that a person copies from the output."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sluice.command_line import COMMAND

_SCRIPT = "run_workflow.py"


def program() -> str:
    """Return the command of this process: `python run_workflow.py`, or with the path of another interpreter."""
    return command_of(Path(sys.executable), Path(sys.argv[0]).absolute(), os.get_exec_path())


def next_commands(name: str, group: str = "") -> str:
    """Return the commands that follow or show what was started detached.

    Args:
        group: the group of the commands, such as `backfill`; empty for a run.
    """
    command = f"{program()} {group}".rstrip()
    return f"next: {command} watch {name}   # follow it\n      {command} status {name}   # show it once"


def command_of(interpreter: Path, script: Path, search_path: Sequence[str]) -> str:
    """Return the command that starts a script by an interpreter.

    Args:
        search_path: folders where a shell looks for programs. An interpreter that it finds there needs no path.
    """
    if script.name != _SCRIPT:
        return COMMAND
    for name in ("python", "python3"):
        known = shutil.which(name, path=os.pathsep.join(search_path))
        if known and Path(known).absolute() == interpreter:
            return f"{name} {shlex.quote(_relative(script))}"
    return f"{shlex.quote(_relative(interpreter))} {shlex.quote(_relative(script))}"


def _relative(path: Path) -> str:
    """Return the shorter form of a path: relative if it is below the current folder."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
