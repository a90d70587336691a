"""Templates of the page. Everything that they show is escaped."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from sluice.presentation.cells import shown_value
from sluice.presentation.diffs import signed
from sluice.redaction import redacted
from sluice.sizes import format_count, format_size
from sluice.times import format_time, parse_time

_LONGEST_CELL = 120
_DECIMAL = re.compile(r"[+-]?[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?")
"""A decimal number, which JSON rows contain as text."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def render(template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """Return a rendered template as a response."""
    return HTMLResponse(_environment.get_template(template).render(**values), status)


def cell(value: object) -> str:
    """Return the value of a row as text: cut, without secrets, and `null` for no value."""
    text = redacted(shown_value(value))
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def is_number(value: object) -> bool:
    """Return True if a value of a row is a number. Digits alone are text: they may be a code."""
    if isinstance(value, str):
        return _DECIMAL.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def numeric_columns(rows: Sequence[Mapping[str, object]]) -> frozenset[str]:
    """Return the columns in which every value that is not null is a number."""
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in (rows[0] if rows else ())}
    return frozenset(name for name, known in values.items() if known and all(map(is_number, known)))


def elapsed(duration: timedelta | float) -> str:
    """Return a duration in its two largest units: `3 h 18 min`, `9 s`."""
    total = max(0, int(duration.total_seconds() if isinstance(duration, timedelta) else duration))
    days, hours, minutes = total // _DAY, total % _DAY // _HOUR, total % _HOUR // _MINUTE
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {total % _MINUTE} s" if minutes else f"{total} s"


def left(time: str) -> str:
    """Return the time left until a time in ISO 8601; empty if it is not a time."""
    try:
        until = parse_time(time)
    except ValueError:
        return ""
    until = until if until.tzinfo else until.replace(tzinfo=timezone.utc)
    return elapsed(until - datetime.now(timezone.utc))


_FILTERS: dict[str, Callable[..., object]] = {
    "cell": cell,
    "signed": lambda number, kind: "?" if number is None else signed(kind, number),
    "number": lambda number: "?" if number is None else f"{number:,}",
    "elapsed": elapsed,
    "left": left,
    "time": format_time,
    "size": format_size,
    "count": format_count,
    "numeric_columns": numeric_columns,
    "hash": lambda text: str(text or "")[:7],
}

_environment = Environment(
    loader=PackageLoader("web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(_FILTERS)
_environment.tests["numeric"] = is_number
