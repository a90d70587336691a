"""The commands by name. Each is imported on use, so that no command waits for the imports of another."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from typer import Context, Exit, Typer
from typer.core import TyperGroup
from typer.main import get_command

from cli.exit_codes import WRONG_USE


@dataclass(frozen=True)
class LazyCommand:
    """A command that is not imported yet."""

    target: str
    """The function of the command, or a Typer application with subcommands, as `module:name`."""
    help: str
    """The first line of its help, which the list of commands shows without the import."""


COMMANDS = {
    "run": LazyCommand(
        "cli.run.start:run",
        "Start a run and follow it. Ctrl-C detaches; the run goes on. `run` may be left out.",
    ),
    "watch": LazyCommand("cli.run.watch_command:watch", "Follow a run to its end, and report it."),
    "status": LazyCommand(
        "cli.run.status:status",
        "Show the status of a run, or its result. The exit code says only whether the status could be read.",
    ),
    "list": LazyCommand(
        "cli.run.list_runs:list_command",
        "List runs with their state, work and start; or schedules, or backfills.",
    ),
    "cancel": LazyCommand(
        "cli.run.cancel:cancel",
        "Cancel a run: stop its Spark job and delete its branch. Main does not change.",
    ),
    "approve": LazyCommand(
        "cli.approval.decide:approve",
        "Approve a run that waits for approval. Without --hash, its report is shown, and you confirm.",
    ),
    "reject": LazyCommand(
        "cli.approval.decide:reject",
        "Reject a run that waits for approval. Without --hash, its report is shown, and you confirm.",
    ),
    "check": LazyCommand(
        "cli.pipeline.check_pipeline:check_pipeline",
        "Check a pipeline file, its files and their columns. This needs no server and runs nothing.",
    ),
    "plan": LazyCommand(
        "cli.pipeline.plan_pipeline:plan_pipeline",
        "Check a pipeline file as `check` does, and ask a worker what its publish guarantees. This runs nothing.",
    ),
    "rehearse": LazyCommand(
        "cli.pipeline.rehearse:rehearse",
        "Plant a fault for each check on a branch that is deleted, and show that each check stops the run.",
    ),
    "checks": LazyCommand(
        "cli.pipeline.checks:list_checks",
        "List every check, or one: its parameters, and how it can be answered.",
    ),
    "import": LazyCommand(
        "cli.pipeline.import_checks:import_file",
        "Turn the tests of dbt, SodaCL or Great Expectations into checks, as YAML; report the rest with its reasons.",
    ),
    "generate": LazyCommand(
        "cli.pipeline.generate:generate",
        "Write a file of rows that a pipeline's checks accept. Nothing is loaded.",
    ),
    "quarantine": LazyCommand(
        "cli.quarantine.commands:app",
        "Inspect branches that were kept out of main; repair, release or delete them. These commands need a worker.",
    ),
    "requeue": LazyCommand(
        "cli.quarantine.requeue:requeue",
        "Move rows of a quarantine table back into their table, repaired and audited again. This starts a new run.",
    ),
    "rollback": LazyCommand(
        "cli.publishing.rollback:rollback",
        "Roll a published run back: restore its tables to what they were before it. This starts a new run.",
    ),
    "backfill": LazyCommand(
        "cli.backfills.commands:app",
        "Run a pipeline for each of many partitions. `backfill FILE` is short for `backfill start FILE`.",
    ),
    "deploy": LazyCommand(
        "cli.schedules.deploy:deploy_command",
        "Apply the schedules and landing zones that the pipeline files of a folder state. Shows a plan first.",
    ),
    "pause": LazyCommand(
        "cli.schedules.pause:pause_command",
        "Pause the schedule and the landing zone of a pipeline. `deploy` does not resume them.",
    ),
    "resume": LazyCommand(
        "cli.schedules.resume:resume_command",
        "Resume the schedule and the landing zone of a pipeline. Starts missed during the pause stay missed.",
    ),
    "arrivals": LazyCommand(
        "cli.arrivals.commands:arrivals_command",
        "Show the files of a landing zone with their states. Without a pipeline, show all zones.",
    ),
    "query": LazyCommand(
        "cli.lake.query:query",
        "Query tables of main, or of a branch, by SQL. It changes nothing. This needs a worker.",
    ),
    "diff": LazyCommand(
        "cli.lake.diff:diff",
        "Show which rows differ: of a run and main before it, or of two publications. This needs a worker.",
    ),
    "files": LazyCommand(
        "cli.lake.files:files",
        "List the files that runs loaded, with their tables and outcomes. This needs a worker.",
    ),
    "results": LazyCommand(
        "cli.lake.results:results",
        "Query the verdicts of every run that ended, by SQL. This needs a worker.",
    ),
    "page": LazyCommand(
        "cli.installation.page:page",
        "Serve the page on 127.0.0.1: what waits for you, what changes, what was kept out and why. Ctrl-C ends it.",
    ),
    "doctor": LazyCommand(
        "cli.installation.doctor:doctor",
        "Check the whole installation, and report what is missing and how to get it.",
    ),
    "approver-key": LazyCommand(
        "cli.installation.keys:approver_key",
        "Make a key that signs decisions; print the line for the list of approvers.",
    ),
    "codec-key": LazyCommand(
        "cli.installation.keys:codec_key",
        "Make a key that encrypts what Temporal stores. Data cannot be read without it: keep a copy.",
    ),
    "codec-server": LazyCommand(
        "cli.installation.codec_server:codec_server",
        "Decrypt payloads for the Temporal Web UI. Enter the printed address there as the remote codec endpoint.",
    ),
}


def load_command(name: str) -> Any:
    """Import a command by name; return Click's command."""
    module, _, attribute = COMMANDS[name].target.partition(":")
    with _no_garbage_collection():
        target = getattr(import_module(module), attribute)
    app = target if isinstance(target, Typer) else Typer(add_completion=False, rich_markup_mode=None)
    if app is not target:
        app.command(name)(target)
    command = get_command(app)
    command.name = name
    return command


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Stop the garbage collector during imports, and exempt their objects from it: they live as long as the process.

    Otherwise, the collector takes more than a tenth of the processor time of a command that only lists runs.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class LazyGroup(TyperGroup):
    """A group that imports its commands lazily. Source: Click's documentation, "Lazily loading subcommands"."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # Typer's own context is one
        """Return the names of all commands."""
        return [*COMMANDS]

    def get_command(self, ctx: Context, cmd_name: str):  # type: ignore[no-untyped-def, override]  # Click's, or Typer's
        """Return a command, importing it if necessary."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """Write the list of commands for the help, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])


def show_help(context: Context) -> None:
    """Show the help of a group of commands that is called without one, as wrong use."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise Exit(WRONG_USE)
