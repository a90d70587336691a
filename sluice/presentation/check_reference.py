"""Reference of checks, made from their classes: the table of the documents, and the list of the command line."""

import inspect
import json

from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY
from sluice.checks.rows import RowCheck
from sluice.presentation.known_checks import CheckEntry

_COMMON = ("check", "severity", "scope", "waivable", "at")
_ROWS = ("where", "mostly", "max_failures", "warn_if", "fail_if")


def entries() -> list[CheckEntry]:
    """Return every check, in the registry's order."""
    return [
        CheckEntry(
            name=name,
            meaning=" ".join((inspect.getdoc(cls) or "").split()),
            parameters=_parameters(cls),
            row_check=issubclass(cls, RowCheck),
            proof=cls.proof,
            aliases=list(cls.aliases),
        )
        for name, cls in REGISTRY.items()
    ]


def listed() -> str:
    """Return the content of `known_checks.json`."""
    return json.dumps([vars(entry) for entry in entries()], indent=1, ensure_ascii=False) + "\n"


def markdown() -> str:
    """Return the checks as a table for the documents."""
    lines = ["| check | what must be true | parameters | answered from metadata when |", "|---|---|---|---|"]
    for entry in entries():
        meaning = entry.meaning.replace("|", "\\|")
        parameters = ", ".join(f"`{each}`" for each in entry.parameters)
        if entry.row_check:
            parameters += f"{', ' if parameters else ''}row parameters"
        lines.append(f"| `{entry.name}` | {meaning} | {parameters} | {entry.proof} |")
    return "\n".join(lines)


MARKS = ("<!-- checks: made by `make docs` -->", "<!-- end of checks -->")
"""Lines of the documents between which the table stands."""


def documented(text: str) -> str:
    """Return a document with its table of checks updated."""
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    return f"{before}{MARKS[0]}\n{markdown()}\n{MARKS[1]}{after}"


def _parameters(cls: type[Check]) -> list[str]:
    hidden = (*_COMMON, *(_ROWS if issubclass(cls, RowCheck) else ()))
    return [
        f"{name}{'' if field.is_required() else '?'}" for name, field in cls.model_fields.items() if name not in hidden
    ]
