"""Runs that have ended, newest first. Each reading lists only those that ended since the one before."""

import time
from datetime import datetime, timedelta, timezone

from temporalio.client import Client

from runtime.run.find_run import RunFilter
from runtime.run.listed_run import ListedRun, listed_run

_EVER = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LISTED_AFTER = timedelta(minutes=2)
"""Time after the end of a run within which Temporal lists it as ended."""
_KNOWN = 50
"""Number of successive known runs after which older runs are not listed. Temporal's SDK needs half a millisecond to
read a listed run."""
_WHOLE_AFTER = 600.0
"""Age after which all runs are listed again, in seconds, because Temporal forgets runs."""


class EndedRuns:
    """Reads runs that have ended from Temporal."""

    def __init__(self, client: Client, most: int, *, state: str = "", within: timedelta | None = None) -> None:
        """Create it without any run.

        Args:
            most: maximum number of runs.
            state: outcome of the runs; empty for any.
            within: time since their end; None for any.
        """
        self._client, self._most, self._state, self._within = client, most, state, within
        self._known: list[ListedRun] = []
        self._whole_at = 0.0

    async def read(self) -> list[ListedRun]:
        """Return the runs, the latest end first.

        Raises:
            RPCError: Temporal does not answer.
        """
        now = time.monotonic()
        is_whole = not self._known or now >= self._whole_at + _WHOLE_AFTER
        known = [] if is_whole else self._known
        oldest = datetime.now(timezone.utc) - self._within if self._within else _EVER
        since = max(oldest, _end(known[0]) - _LISTED_AFTER) if known else oldest
        by_id = {each.run_id: each for each in known if _end(each) >= oldest}
        by_id |= await self._list(RunFilter(state=self._state, ended_since=since).query, frozenset(by_id))
        self._known = sorted(by_id.values(), key=_end, reverse=True)[: self._most]
        if is_whole:
            self._whole_at = now
        return self._known

    async def _list(self, query: str, known: frozenset[str]) -> dict[str, ListedRun]:
        """Return the runs of a query by run id, without those that are known."""
        listed: dict[str, ListedRun] = {}
        in_sequence = 0
        page_size = _KNOWN if known else self._most
        async for each in self._client.list_workflows(query, limit=self._most, page_size=page_size):
            in_sequence = in_sequence + 1 if each.run_id in known else 0
            if in_sequence == _KNOWN:
                break
            if not in_sequence:
                listed[each.run_id] = await listed_run(each)
        return listed


def _end(run: ListedRun) -> datetime:
    return run.closed or run.started
