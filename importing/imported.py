"""The result of an import: the checks by table, and the tests that were not carried over."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pydantic import ValidationError

from importing.sql_shape import shape_problem
from sluice.checks.registry import REGISTRY, expand
from sluice.errors import InvalidPipeline
from sluice.validation_errors import plain_message

Parameters = dict[str, Any]
_SQL = frozenset(["expression", "where", "query"])
"""Parameters of checks that are SQL."""
_OF_BIGQUERY = re.compile(r"'(?:safe_divide|safe_cast)' at .* is not a function of Spark's", re.IGNORECASE)


class NotCarriedOver(Exception):
    """Raised when a test has no equivalent. The message is the reason."""


class AlwaysPasses(NotCarriedOver):
    """Raised when a test states nothing that could fail, such as a range without bounds."""


class NotActive(NotCarriedOver):
    """Raised when a test does not run in its own tool."""


def unreadable(error: Exception) -> str:
    """Return the reason for leaving out a test whose reading raised an unexpected error."""
    return f"it cannot be read: {type(error).__name__}: {str(error)[:120]}"


@dataclass(frozen=True)
class SourceText:
    """A file to import."""

    path: str
    """Its path in messages."""
    text: str


@dataclass(frozen=True)
class Leftover:
    """A test that was not carried over."""

    file: str
    line: int
    test: str
    """The test with its subject: `shop.orders.amount: my_test`."""
    reason: str
    inactive: bool = False
    """True if the test does not run in its own tool either."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.test}: {self.reason}"


@dataclass
class ImportedChecks:
    """The checks made from files, and the tests that were not carried over."""

    checks: dict[str, list[Parameters]] = field(default_factory=dict)
    """The checks by table, as a pipeline file has them."""
    left: list[Leftover] = field(default_factory=list)
    carried_over: int = 0
    """The number of tests that became checks; one test may become several."""

    def add(self, table: str, at: tuple[str, int], test: str, checks: Sequence[Parameters], *, about: str = "") -> None:
        """Add the checks of one test if all are valid, else record the reason why one is not.

        Args:
            at: the file and the line of the test.
            about: part of the table that the test is about, such as a column.
        """
        try:
            written = [_as_written(check) for check in checks]
            for check in written:
                require_valid(check)
        except NotCarriedOver as error:
            self.leave(table, at, test, str(error), about=about)
            return
        add_new(self.checks.setdefault(str(table), []), written)
        self.carried_over += 1

    def leave(
        self, table: str, at: tuple[str, int], test: str, reason: str, *, about: str = "", inactive: bool = False
    ) -> None:
        """Record a test that is not carried over, with the reason."""
        name = f"{'.'.join(filter(None, [table, about]))}: {test}" if table or about else test
        self.left.append(Leftover(*at, test=name, reason=reason, inactive=inactive))

    @property
    def active_left(self) -> int:
        """The number of tests that run in their own tool and were not carried over."""
        return sum(not each.inactive for each in self.left)


def _as_written(value: Any) -> Any:
    """Convert a value of a check to one that a YAML file can contain. A subclass of text becomes plain text.

    Raises:
        NotCarriedOver: a file cannot contain it.
    """
    if isinstance(value, Mapping):
        return {_as_written(key): _as_written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_written(each) for each in value]
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | date):
        return value
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    raise NotCarriedOver(f"{str(value)[:60]!r} is not a value that a pipeline file can contain")


def add_new(listed: list[Parameters], checks: Sequence[Parameters]) -> None:
    """Append checks that are not in a list yet. Unlike in Python, 1, 1.0 and true are different values."""
    known = {_as_text(each) for each in listed}
    for check in checks:
        if _as_text(check) not in known:
            known.add(_as_text(check))
            listed.append(check)


def _as_text(check: Parameters) -> str:
    return json.dumps(check, sort_keys=True, default=repr)


def require_valid(check: Mapping[str, Any]) -> None:
    """Check that a check, written as in a pipeline file, is valid.

    Raises:
        NotCarriedOver: it is not valid.
    """
    try:
        for fields in expand(dict(check)):
            REGISTRY[fields["check"]].model_validate(fields)
    except InvalidPipeline as error:
        raise NotCarriedOver(str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        message = plain_message(first)
        if _OF_BIGQUERY.search(message):
            message += "; --dialect bigquery translates it"
        raise NotCarriedOver(f"{path + ': ' if path else ''}{message}") from error
    for parameters in check.values():
        for name in _SQL & {*parameters} if isinstance(parameters, Mapping) else ():
            if problem := shape_problem(str(parameters[name])):
                raise NotCarriedOver(f"{name}: {problem}")


def is_valid(check: Mapping[str, Any]) -> bool:
    """Return True if a check, written as in a pipeline file, is valid."""
    try:
        require_valid(check)
    except NotCarriedOver:
        return False
    return True
