"""A first word that is neither a command nor a file: which command was meant."""

from collections.abc import Iterable
from pathlib import Path

from sluice.identifiers import suggestion

QUARANTINE_COMMANDS = {"show", "diff", "discard", "keep", "release", "repair"}
"""The commands of `quarantine` that are not also commands of their own; imported lazily, they are named here."""


def unknown_command(word: str, commands: Iterable[str]) -> str:
    """Return why a word is no command, and which one is meant; empty if it is a pipeline file, or an option."""
    if word.startswith("-") or "/" in word or Path(word).suffix or Path(word).exists():
        return ""
    if word in QUARANTINE_COMMANDS:
        also = "; `status RUN` shows any run" if word == "show" else ""
        return f"there is no command {word!r}: it is `quarantine {word} RUN`{also}"
    known = {*commands}
    close = suggestion(word, known | QUARANTINE_COMMANDS)
    for name in QUARANTINE_COMMANDS - known:
        close = close.replace(f"mean '{name}'", f"mean 'quarantine {name}'")
    return f"there is no command or pipeline file {word!r}{close or '; `--help` lists the commands'}"
