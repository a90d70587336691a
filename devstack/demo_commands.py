"""Helpers for the parts of the demo: print and run a command, print lines and headings, check an expectation."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.rule import Rule

from devstack.errors import StackError
from devstack.stack import ROOT

PROGRAM = "run_workflow.py"
console = Console()


class Commands:
    """The command line, with the variables of the local stack."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.environment = {**os.environ, **variables}

    def run(self, *arguments: str) -> int:
        """Run a command as a person would, and return its exit code."""
        shown = " ".join(f'"{each}"' if " " in each else each for each in arguments)
        console.print(f"[bold cyan]$ .venv/bin/python {PROGRAM} {shown}[/]", highlight=False, soft_wrap=True)
        return subprocess.run(self._command(arguments), cwd=ROOT, env=self.environment, check=False).returncode

    def read(self, *arguments: str) -> dict[str, Any]:
        """Return the JSON object that a command prints, or an empty object if the command fails."""
        read = subprocess.run(
            self._command([*arguments, "--json"]),
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        answer: dict[str, Any] = json.loads(read.stdout) if read.returncode == 0 else {}
        return answer

    def wait_for(self, condition: Callable[[dict[str, Any]], bool], limit: float, *arguments: str) -> dict[str, Any]:
        """Repeat a command until its answer fulfils a condition; return the answer.

        Args:
            condition: the condition.
            limit: maximum time to wait, in seconds.
            arguments: the command.

        Raises:
            StackError: the condition did not become true in time.
        """
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            answer = self.read(*arguments)
            if answer and condition(answer):
                return answer
            time.sleep(1)
        raise StackError(f"`{' '.join(arguments)}` did not show what the demo waits for within {limit:.0f} s")

    def _command(self, arguments: "list[str] | tuple[str, ...]") -> list[str]:
        return [sys.executable, str(ROOT / PROGRAM), *arguments]


def title(text: str) -> None:
    """Print a heading."""
    console.print()
    console.print(Rule(f"[bold]{text}[/]", align="left"))


def say(text: str) -> None:
    """Print a line."""
    console.print(text, highlight=False, soft_wrap=True)


def expect(condition: bool, otherwise: str) -> None:
    """Check a condition that the demo expects.

    Raises:
        StackError: the condition is false.
    """
    if not condition:
        raise StackError(f"the demo did not end as expected: {otherwise}")
