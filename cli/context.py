"""Run a command: settings, a connection to Temporal, and one message and exit code for each expected error."""

import asyncio
import getpass
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from rich.console import Console
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.exit_codes import DETACHED, FAILED, UNREACHABLE, WRONG_USE, print_error
from cli.layout import make_console
from cli.options import ReportFormat
from runtime.installation.identity import with_installation
from runtime.installation.reached_installation import connect_command, running_workers
from runtime.missing_worker import START_A_WORKER
from runtime.run.starter import Starter, starter_here
from runtime.worker_answer import notice_if_slow
from sluice.environment_files import read_environment
from sluice.errors import InvalidPipeline, ServiceUnavailable, SluiceError
from sluice.setting_groups import InstallationSettings
from sluice.settings import Settings, read_settings

_Prepared = TypeVar("_Prepared")


@dataclass
class Interruption:
    """The message printed when a person interrupts a command. By default it says that nothing was changed."""

    message: str = "Interrupted; nothing was changed."


@dataclass(frozen=True)
class CommandContext:
    """The connection, settings and console that every command needs."""

    client: Client
    settings: Settings
    """Settings with the id of the reached installation: its landing zones, schedules and backfills have this id."""
    console: Console
    as_json: bool
    interruption: "Interruption"
    report: ReportFormat | None = None
    """Format of the report on standard output; None if no report is requested."""

    @property
    def installation_with_id(self) -> InstallationSettings:
        """Settings of the reached installation. If its id is not known, that of the home is used, and created."""
        return with_installation(self.settings).installation

    def link(self, workflow_id: str, run_id: str) -> str:
        """Return the address of a run in the Web UI."""
        web_ui = self.settings.installation.temporal_ui
        return f"{web_ui}/namespaces/{self.client.namespace}/workflows/{workflow_id}/{run_id}"

    async def hint_at_missing_worker(self, name: str) -> None:
        """Print a hint to standard error if no worker runs that could begin a workflow of this name."""
        queue = self.settings.installation.sluice_task_queue
        if not await running_workers(self.client, queue):
            print(
                f"hint: {name} waits: no worker takes work from the task queue {queue!r}; {START_A_WORKER}",
                file=sys.stderr,
            )

    def print_result(self, fields: dict[str, Any], text: str) -> None:
        """Print the result of a command: an object with --json, otherwise a sentence."""
        if self.as_json:
            print(json.dumps(fields))
        elif text:
            self.console.print(text, highlight=False, soft_wrap=True)


def run_command(
    command: Callable[[CommandContext, _Prepared], Awaitable[int]],
    as_json: bool,
    prepare: Callable[[], _Prepared],
    report: ReportFormat | None = None,
    *,
    read_only: bool = False,
) -> None:
    """Run a command and exit with its exit code. An expected error becomes one message.

    Args:
        prepare: the part that needs no server. It runs before the connection, so that wrong input is reported without
            a server.
        report: the format of the report on standard output.
        read_only: True if the command changes nothing, so that it may reach another installation.
    """
    interruption = Interruption()
    try:
        if as_json and report:
            raise InvalidPipeline("--json and --report are two forms of one report: give one of them")
        code = asyncio.run(_connect_and_run(command, as_json, prepare(), interruption, report, read_only=read_only))
    except KeyboardInterrupt:
        print(interruption.message, file=sys.stderr)
        code = DETACHED
    except SluiceError as error:
        code = print_error(error, as_json, UNREACHABLE if isinstance(error, ServiceUnavailable) else WRONG_USE)
    except RPCError as error:
        unreachable = error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED)
        code = print_error(error, as_json, UNREACHABLE if unreachable else FAILED)
    raise typer.Exit(code)


def no_preparation() -> None:
    """Prepare nothing."""


def current_user() -> Starter:
    """Return the user of this machine and the current folder, as the starter of runs."""
    return starter_here(getpass.getuser())


async def _connect_and_run(
    command: Callable[[CommandContext, _Prepared], Awaitable[int]],
    as_json: bool,
    prepared: _Prepared,
    interruption: Interruption,
    report: ReportFormat | None,
    *,
    read_only: bool,
) -> int:
    environment = read_environment()
    reached = await connect_command(environment, read_only=read_only)
    settings = read_settings(environment).with_values(sluice_installation=reached.installation)
    if reached.hint:
        print(f"sluice: {reached.hint}", file=sys.stderr)
    console = make_console(to_stderr=as_json or report is not None)
    notice_if_slow(lambda: print("sluice: waiting for the answer of a worker", file=sys.stderr))
    return await command(CommandContext(reached.client, settings, console, as_json, interruption, report), prepared)
