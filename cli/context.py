"""Opening the front door: settings, a connection, and errors that become one message and an exit code."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from rich.console import Console
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.screens import report
from runtime.temporal_client import connect
from sluice.contracts.run import RunResult
from sluice.errors import ServiceUnavailable, SluiceError
from sluice.publishing.outcomes import exit_code
from sluice.settings import Settings, read_environment, read_settings

WRONG_USE, FAILED, UNREACHABLE, DETACHED = 2, 6, 7, 130
_LOG_WIDTH = 140
_Ready = TypeVar("_Ready")


@dataclass(frozen=True)
class CommandContext:
    """What every command needs."""

    client: Client
    settings: Settings
    console: Console
    as_json: bool

    def link(self, workflow_id: str, run_id: str) -> str:
        """Return where the Web UI shows a run."""
        return f"{self.settings.temporal_ui}/namespaces/{self.client.namespace}/workflows/{workflow_id}/{run_id}"

    def finish(self, result: RunResult) -> int:
        """Show how a run ended; return the exit code that stands for it."""
        if self.as_json:
            print(result.model_dump_json())
        else:
            report(result, self.link(result.workflow_id, result.run_id), self.console)
        return exit_code(result)

    def say(self, fields: dict[str, Any], words: str) -> None:
        """Say what was done, as an object or in words."""
        if self.as_json:
            print(json.dumps(fields))
        else:
            self.console.print(words, highlight=False)


def enter(act: Callable[[CommandContext, _Ready], Awaitable[int]], as_json: bool, before: Callable[[], _Ready]) -> None:
    """Do what needs no server, open the door, act, and leave with the exit code; a foreseen error is one message."""
    try:
        code = asyncio.run(_opened(act, as_json, before()))
    except KeyboardInterrupt:
        print("Detached; the run goes on. `watch` follows it again, `cancel` ends it.", file=sys.stderr)
        code = DETACHED
    except SluiceError as error:
        code = _complain(error, as_json, UNREACHABLE if isinstance(error, ServiceUnavailable) else WRONG_USE)
    except RPCError as error:
        lost = error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED)
        code = _complain(error, as_json, UNREACHABLE if lost else FAILED)
    raise typer.Exit(code)


def nothing() -> None:
    """Stand for a command that needs nothing done beforehand."""


async def _opened(act: Callable[[CommandContext, _Ready], Awaitable[int]], as_json: bool, ready: _Ready) -> int:
    environment = read_environment()
    settings = read_settings(environment)
    console = Console(stderr=as_json)
    if not console.is_terminal:
        console.width = _LOG_WIDTH
    return await act(CommandContext(await connect(environment), settings, console, as_json), ready)


def _complain(error: Exception, as_json: bool, code: int) -> int:
    print(f"sluice: {error}", file=sys.stderr)
    if as_json:
        print(json.dumps({"outcome": None, "error": str(error), "exit_code": code}))
    return code
