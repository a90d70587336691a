"""Intervals of the page."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PageTiming:
    """Intervals of the page, in seconds."""

    patience: float = 2.0
    """Time that a reader waits for the answer of a worker. Knowing that no worker answers takes longer."""
    runs: float = 1.0
    """Age after which the runs on the home page are read again."""
    stages: float = 3.0
    """Age that the stage of a run may have in lists, so that a busy run is not queried at each of its steps."""
    events: float = 1.5
    """Time between two comparisons of the runs. All open pages share what is read for it."""


TIMING = PageTiming()
