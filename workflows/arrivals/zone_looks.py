"""When a landing zone is looked at again, and whether all of it is listed then or a few files are looked at."""

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.arrivals import CollectArrivalsResult

_SOON, _EVERY = 0.2, 1.0
"""Seconds to wait after a notification, for those that come together with it; the fewest between two listings."""
_ON_ERROR = 60.0
"""Seconds until the next look after one that failed."""
_MOST_NAMED, _MOST_CHARACTERS = 500, 40_000
"""So many files are looked at by name; where notifications name more, the whole zone is listed. A character may be
12 bytes in the request of a look, and Temporal allows 2 MB."""


class ZoneLooks:
    """Plans the looks at one landing zone.

    The zone is listed at least once per interval. Between two listings, the files that notifications name and those
    that wait are looked at, so that a look costs little however many files lie there.
    """

    def __init__(self) -> None:
        self.at = _now()
        """When the next look is due, in seconds since 1970."""
        self._began_at = self._list_at = 0.0
        self._named: set[str] = set()
        self._is_notified = False
        self._must_list = True

    def notify(self, files: Sequence[str]) -> None:
        """Have a look soon at files that a notification named; without any, the whole zone is listed."""
        self._is_notified = True
        self._named.update(files)
        if not files or len(self._named) > _MOST_NAMED or sum(map(len, self._named)) > _MOST_CHARACTERS:
            self._must_list = True
        if self._must_list:
            self._named.clear()
        since_last = _EVERY if self._must_list else _SOON
        self.at = min(self.at, max(_now() + _SOON, self._began_at + since_last))

    def list_all(self) -> None:
        """Have the whole zone listed by the next look."""
        self._must_list = True

    def begin(self) -> list[str] | None:
        """Begin a look; return the files that were named since the last one, or None where the zone is to be listed."""
        self._began_at, self._is_notified = _now(), False
        named, self._named = sorted(self._named), set()
        if self._must_list or self._began_at >= self._list_at:
            self._must_list = False
            return None
        return named

    def end(self, files: list[str] | None, result: CollectArrivalsResult, interval: float) -> None:
        """Plan the next look.

        Args:
            files: what `begin` returned for this one.
            interval: the seconds between two listings.
        """
        if result.problem:
            self._must_list, delay = True, interval
        else:
            if files is None:
                self._list_at = _now() + interval
                # What waits was found by a listing: notifications may not tell of what follows it, either.
                self._must_list = self._must_list or result.look_in is not None
            delay = max(0.0, self._list_at - _now())
        if result.is_passing:
            delay = min(delay, _ON_ERROR)
        if result.look_in is not None:
            delay = min(delay, result.look_in)
        if self._is_notified:  # while this look went on: it may be about a file that came after it
            delay = min(delay, _EVERY)
        self.at = _now() + delay


def _now() -> float:
    return workflow.now().timestamp()
