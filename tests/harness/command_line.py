"""Run a command of the command line in a process of its own, to its end."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from devstack.stack import ROOT
from tests.harness.forked import ForkedProcess

PROGRAM = ROOT / "run_workflow.py"
"""The program itself, for tests of its start and of signals."""
_LIMIT = 600


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, parsed as the one JSON object that `--json` prints."""
        printed: dict[str, Any] = json.loads(self.out)
        return printed


def run_command(folder: Path, environment: Mapping[str, str], *arguments: str, limit: float = _LIMIT) -> CommandResult:
    """Run a command to its end, in a folder; `limit` is in seconds.

    Raises:
        subprocess.TimeoutExpired: the command did not end within the limit; its process was killed.
    """
    with tempfile.TemporaryDirectory() as printed:
        out, err = Path(printed) / "out", Path(printed) / "err"
        process = ForkedProcess(partial(_command, arguments), folder, environment, out, err)
        try:
            code = process.wait(limit)
        finally:
            process.kill()
        return CommandResult(code, out.read_text(), err.read_text())


def _command(arguments: tuple[str, ...]) -> None:
    from cli.app import main  # noqa: PLC0415  # the server has imported it; the process of the tests does not need it

    main(arguments)
