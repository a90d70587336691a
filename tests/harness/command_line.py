"""The command line as a person uses it: `run_workflow.py`, started as a process."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.stack import ROOT

PROGRAM = ROOT / "run_workflow.py"
_LIMIT = 600


@dataclass(frozen=True)
class CommandResult:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one object that it is with --json."""
        printed: dict[str, Any] = json.loads(self.out)
        return printed


def run_command(folder: Path, environment: Mapping[str, str], *arguments: str, limit: float = _LIMIT) -> CommandResult:
    """Run a command to its end, in a folder; `limit` is in seconds."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)
