"""The command that starts this command line, for commands that a person copies from the output."""

import shlex
import shutil
import sys
from pathlib import Path

from sluice.command_line import COMMAND

_SCRIPT = "run_workflow.py"


def program() -> str:
    """Return the command of this process: `python run_workflow.py`, or with the path of another interpreter."""
    script = Path(sys.argv[0]).absolute()
    return f"{_interpreter()} {shlex.quote(_relative(script))}" if script.name == _SCRIPT else COMMAND


def _interpreter() -> str:
    running = Path(sys.executable)
    for name in ("python", "python3"):
        if (known := shutil.which(name)) and Path(known).absolute() == running:
            return name
    return shlex.quote(_relative(running))


def _relative(path: Path) -> str:
    """Return the shorter form of a path: relative if it is below the current folder."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
