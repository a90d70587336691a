"""Write docs/commands.md from the help of the commands: `make docs`."""

import textwrap
from pathlib import Path
from typing import Any

from typer.main import get_command

from cli.app import app

DOCUMENT = "docs/commands.md"
_HIDDEN = ("--help",)
_HEADER = """\
# Commands

`python run_workflow.py COMMAND`, in the checkout that the local stack runs from. `--help` prints the same.

On a terminal, lines wrap, and a row that does not fit takes several lines. In a pipe or a file, each row is one line of
any length, with two spaces or more between its columns, as kubectl prints it: `grep` and `awk -F'  +'` read it, and
nothing is cut. With `COLUMNS=80`, lines wrap there too. `--json` prints one object for programs.

This page is made from the help of the commands by `make docs`.
"""


def command_reference() -> str:
    """Return the page: usage, help, arguments and options of each command."""
    group: Any = get_command(app)
    context = group.make_context("run_workflow.py", ["list"], resilient_parsing=True)
    sections = [_HEADER]
    commands = {name: group.get_command(context, name) for name in sorted(group.list_commands(context))}
    for name, command in commands.items():
        sections += _sections(name, command, level=2) if not command.hidden else []
    sections.append(f"## Exit codes\n\n{_wrapped(str(app.info.epilog))}\n")
    return "\n".join(sections)


def _sections(name: str, command: Any, level: int) -> list[str]:
    """Return the section of a command, and those of its subcommands."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    text = f"{'#' * level} {name}\n\n`{name} {usage}`\n\n{_wrapped(command.help or '')}\n"
    rows = [row for row in (_row(parameter, context) for parameter in command.params) if row]
    table = "\n| | |\n|---|---|\n" + "".join(rows) if rows else ""
    subcommands = getattr(command, "commands", {})
    shown = {f"{name} {each}": command for each, command in sorted(subcommands.items()) if not command.hidden}
    nested = [_sections(each, subcommand, level + 1) for each, subcommand in shown.items()]
    return [text + table, *(section for sections in nested for section in sections)]


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def _row(parameter: Any, context: Any) -> str:
    """Return the row of a parameter; empty for one without help, which the usage shows."""
    if not (record := parameter.get_help_record(context)) or record[0] in _HIDDEN:
        return ""
    names, text = (part.replace("|", "\\|").strip() for part in record)
    return f"| `{' '.join(names.split())}` | {' '.join(text.split())} |\n" if text else ""


if __name__ == "__main__":
    Path(DOCUMENT).write_text(command_reference(), encoding="utf-8")
