"""The command line: its commands, their exit codes, and one message for wrong use."""

import os
import sys
from collections.abc import Sequence

import typer

from cli.exit_codes import WRONG_USE, print_error
from cli.lazy_commands import COMMANDS, LazyGroup
from cli.unknown_command import describe_usage, unknown_command
from sluice.errors import InvalidPipeline, SluiceError

_DEFAULT = "run"
_HELP = ("--help", "-h")
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Typer's error for wrong arguments."""

app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run pipelines: write on a branch, audit exactly that, and publish it by one merge, or say why not. "
    "`run_workflow.py FILE` is short for `run_workflow.py run FILE`.",
    epilog="Exit codes: 0 published, checked or skipped, 2 wrong use or invalid pipeline, 3 stopped by the audit, "
    "4 rejected or expired, 5 cancelled, 6 failed, 7 a service cannot be reached, 130 detached.",
)


@app.callback()
def _sluice() -> None:
    """Make a group of the application, whose commands are in `cli/lazy_commands.py`."""


def main(arguments: Sequence[str]) -> None:
    """Run a command and exit with its exit code. A bare file name, or no argument, means `run`."""
    words = list(arguments)
    problem = ""
    if not words or (words[0] not in COMMANDS and words[0] not in _HELP):
        problem = unknown_command(words[0], COMMANDS) if words else ""
        words.insert(0, _DEFAULT)
    try:
        if words[0] not in _HELP:
            _export_store_access()
        if problem:
            code = print_error(InvalidPipeline(problem), "--json" in words, WRONG_USE)
        else:
            code = app(words, prog_name="run_workflow.py", standalone_mode=False) or 0
    except _UsageError as error:
        code = print_error(InvalidPipeline(describe_usage(error)), "--json" in words, WRONG_USE)
    except typer.Abort:
        code = print_error(InvalidPipeline("aborted"), "--json" in words, WRONG_USE)
    except SluiceError as error:
        code = print_error(error, "--json" in words, WRONG_USE)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else WRONG_USE
    # Temporal's native client can abort a short-lived program while Python shuts down, and the exit code is lost:
    # exit without that shutdown.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _export_store_access() -> None:
    """Export the variables of the object store, before a command imports a library that reads them."""
    from runtime.store_access import export_store_access  # noqa: PLC0415  # the list of commands does without these imports
    from sluice.environment_files import read_environment  # noqa: PLC0415

    export_store_access(read_environment())
