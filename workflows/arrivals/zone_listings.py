"""Plan of the listings of a landing zone: their times, and the choice between the whole zone and a few files."""

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.arrivals import CollectArrivalsResult

_SOON, _EVERY = 0.2, 1.0
"""Wait after a notification for others that arrive with it, and minimum time between two listings, in seconds."""
_ON_ERROR = 60.0
"""Maximum time until the next listing after one that failed for a passing reason, in seconds."""
_MOST_NAMED, _MOST_CHARACTERS = 500, 40_000
"""Maximum number of files checked by name, and of characters in their paths.

If notifications name more, the whole zone is listed. A character may take 12 bytes in the request of a listing, and
Temporal allows 2 MB.
"""


class ZoneListings:
    """The plan of the listings of one landing zone.

    The whole zone is listed at least once per interval. Between two whole listings, only the waiting files and those
    that notifications name are checked. Such a check costs little even if there are many files.
    """

    def __init__(self) -> None:
        self.at = _now()
        """The time of the next listing, in seconds since 1970."""
        self._began_at = self._list_at = 0.0
        self._named: set[str] = set()
        self._is_notified = False
        self._must_list = True

    def notify(self, files: Sequence[str]) -> None:
        """Plan a check soon of the files that a notification names. If it names none, plan a whole listing."""
        self._is_notified = True
        self._named.update(files)
        if not files or len(self._named) > _MOST_NAMED or sum(map(len, self._named)) > _MOST_CHARACTERS:
            self._must_list = True
        if self._must_list:
            self._named.clear()
        since_last = _EVERY if self._must_list else _SOON
        self.at = min(self.at, max(_now() + _SOON, self._began_at + since_last))

    def list_all(self) -> None:
        """Make the next listing cover the whole zone."""
        self._must_list = True

    def begin(self) -> list[str] | None:
        """Begin a listing; return the files named since the last one, or None to list the whole zone."""
        self._began_at, self._is_notified = _now(), False
        named, self._named = sorted(self._named), set()
        if self._must_list or self._began_at >= self._list_at:
            self._must_list = False
            return None
        return named

    def end(self, files: list[str] | None, result: CollectArrivalsResult, interval: float) -> None:
        """Plan the next listing.

        Args:
            files: the return value of `begin` for the listing that has ended.
            interval: the time between two listings of the whole zone, in seconds.
        """
        if result.problem:
            self._must_list, delay = True, interval
        else:
            if files is None:
                self._list_at = _now() + interval
                # This listing found waiting files. Perhaps no notification named them, nor will name the next ones.
                self._must_list = self._must_list or result.look_in is not None
            delay = max(0.0, self._list_at - _now())
        if result.is_passing:
            delay = min(delay, _ON_ERROR)
        if result.look_in is not None:
            delay = min(delay, result.look_in)
        if self._is_notified:  # the notification may be about a file that this listing missed
            delay = min(delay, _EVERY)
        self.at = _now() + delay


def _now() -> float:
    return workflow.now().timestamp()
