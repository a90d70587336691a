"""The filter of the list of runs, as its address states it."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query

from runtime.run.find_run import RunFilter
from sluice.errors import InvalidPipeline

_LONGEST_DATE = 100
_FIRST_YEAR, _LAST_YEAR = 1970, 2200
"""Years of the days that Temporal compares with the start of a run."""


@dataclass(frozen=True)
class ShownFilter:
    """Conditions that select the runs of the list. An empty field selects all."""

    pipeline: str = ""
    table: str = ""
    state: str = ""
    since: str = ""
    """First day on which the runs started, in UTC."""
    until: str = ""
    """Last day on which the runs started, in UTC."""

    @property
    def is_empty(self) -> bool:
        """True if all runs are selected."""
        return not any(vars(self).values())

    @property
    def run_filter(self) -> RunFilter:
        """The same conditions for Temporal.

        Raises:
            InvalidPipeline: a day is no date, the state does not exist, or a name has a character that no name has.
        """
        since, until = _start_of("since", self.since), _start_of("until", self.until)
        before = until + timedelta(days=1) if until else None
        return RunFilter(self.pipeline, self.table, self.state, since=since, before=before)

    def address(self, after: str = "") -> str:
        """Return the address of the list.

        Args:
            after: key of the page of the list; empty for the first page.
        """
        stated = urlencode({name: value for name, value in (*vars(self).items(), ("after", after)) if value})
        return f"/runs?{stated}" if stated else "/runs"


def _start_of(name: str, day: str) -> datetime | None:
    """Return the start of a day in UTC; None without a day.

    Raises:
        InvalidPipeline: the text is no date, or one with which Temporal compares nothing.
    """
    if not day:
        return None
    try:
        known = date.fromisoformat(day)
    except ValueError:
        known = None
    if known is None or not _FIRST_YEAR <= known.year <= _LAST_YEAR:
        raise InvalidPipeline(
            f"{name}: {day[:20]!r} is not a date of the years {_FIRST_YEAR} to {_LAST_YEAR}: write 2026-12-31"
        )
    return datetime.combine(known, time(), timezone.utc)


def _read(
    pipeline: str = "",
    table: str = "",
    state: str = "",
    since: Annotated[str, Query(max_length=_LONGEST_DATE)] = "",
    until: Annotated[str, Query(max_length=_LONGEST_DATE)] = "",
) -> ShownFilter:
    return ShownFilter(pipeline, table, state, since, until)


TheShownFilter = Annotated[ShownFilter, Depends(_read)]
"""The filter of the address, as a parameter of a view."""
