"""Notices to people about a landing zone, sent in parallel to its work, so that nothing waits for Slack."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.arrivals import CollectArrivalsResult, ZoneNotice
    from sluice.durations import format_duration
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause

_TOGETHER = 3
"""Maximum number of texts in one message. For further texts, the message has only their number."""
_REMEMBERED = 500
"""Maximum number of reported files that the workflow remembers, because each worker has its own memory of files."""
_DIGITS = 12


class ZoneNotices:
    """The notices of one landing zone. Notices that arrive while one is being sent follow in one message."""

    def __init__(self, name: str, calls: ActivityCalls, reported: Iterable[str]) -> None:
        self._name, self._calls = name, calls
        self._waiting: list[str] = []
        self._task: asyncio.Task[None] | None = None
        self.reported = [*reported]
        """Digests of the reported files that are not loaded, each with its reason."""
        self._reported_problem = ""

    @property
    def are_under_way(self) -> bool:
        """True while there are notices to send."""
        return bool(self._waiting) or (self._task is not None and not self._task.done())

    def add(self, texts: Sequence[str]) -> None:
        """Send texts soon."""
        self._waiting += texts
        if texts and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._send())

    def of_listing(self, result: CollectArrivalsResult) -> None:
        """Report the files that are not loaded, unless they were reported before with the same reason."""
        texts = []
        for file in result.kept_out:
            digest = hashlib.sha256(f"{file.path}\n{file.reason}".encode()).hexdigest()[:_DIGITS]
            if digest not in self.reported:
                self.reported.append(digest)
                texts.append(f"{file.path} is not loaded: {file.reason}")
        self.reported = self.reported[-_REMEMBERED:]
        more = [f"{result.more_kept_out:,} more files are not loaded"] if texts and result.more_kept_out else []
        self.add(texts + more)

    def of_problem(self, problem: str, before: str, *, is_passing: bool) -> None:
        """Report once a problem that prevents listings. Report a passing one only after two in a row.

        Args:
            before: the problem of the previous listing.
        """
        is_new = not self._reported_problem and bool(before) if is_passing else problem != self._reported_problem
        if problem and is_new:
            self.add([problem])
            self._reported_problem = problem
        if not problem:
            self._reported_problem = ""

    def of_silence(self, expected: float | None, latest: float) -> bool:
        """Report that nothing to load arrived for longer than the pipeline expects; return True if that is so."""
        if expected is None or workflow.now().timestamp() - latest < expected:
            return False
        self.add([f"nothing to load arrived since {iso_of(latest)}; `expect` allows {format_duration(expected)}"])
        return True

    async def _send(self) -> None:
        while self._waiting:
            texts, self._waiting = self._waiting, []
            shown = "; ".join(texts[:_TOGETHER])
            more = f"; and {len(texts) - _TOGETHER} more: see `arrivals {self._name}`" if len(texts) > _TOGETHER else ""
            try:
                await self._calls.notify_landing_zone(ZoneNotice(name=self._name, text=shown + more))
            except ActivityError as error:
                if is_cancelled(error):
                    raise
                workflow.logger.warning("the notification failed: %s", root_cause(error)[1])


def iso_of(timestamp: float) -> str:
    """Return a time, given in seconds since 1970, in ISO 8601."""
    return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="seconds")
