"""Explain words that no command accepts: the command that was meant, or the problem with an option."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import typer

from sluice.identifiers import suggestion

QUARANTINE_COMMANDS = {"show", "discard", "keep", "release", "repair"}
"""Commands of `quarantine` that are not also top-level commands, listed here since their import is lazy."""

_OTHER_WAYS = {
    "undeploy": "delete the pipeline's file, or its key `schedule` or `arrival`, and run `deploy DIR`",
    "delete": "`rollback RUN` takes a publication back, and `quarantine discard RUN` deletes a quarantined branch",
}
"""Replacements for commands that people expect, by name."""


def unknown_command(word: str, commands: Iterable[str]) -> str:
    """Return why a word is not a command, and a suggestion; empty for an option or a pipeline file."""
    if word.startswith("-") or "/" in word or Path(word).suffix or Path(word).exists():
        return ""
    if word in QUARANTINE_COMMANDS:
        also = "; `status RUN` shows any run" if word == "show" else ""
        return f"there is no command {word!r}: it is `quarantine {word} RUN`{also}"
    if word in _OTHER_WAYS:
        return f"there is no command {word!r}: {_OTHER_WAYS[word]}"
    known = {*commands}
    close = suggestion(word, known | QUARANTINE_COMMANDS)
    for name in QUARANTINE_COMMANDS - known:
        close = close.replace(f"mean '{name}'", f"mean 'quarantine {name}'")
    return f"there is no command or pipeline file {word!r}{close or '; `--help` lists the commands'}"


def describe_usage(error: Exception) -> str:
    """Describe wrong arguments in one sentence."""
    wrong = cast("typer.BadParameter", error)
    command = wrong.ctx.command_path if wrong.ctx else "run_workflow.py"
    problem = wrong.format_message().rstrip(".")
    if command.endswith(" run") and problem == "No such option: --dry-run":
        return f"{problem}: `run_workflow.py plan FILE` shows what a run would do, and starts nothing"
    return f"{problem}: `{command} --help` shows the options"
