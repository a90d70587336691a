"""Intervals of the receivers of notifications."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReceiverTiming:
    """Intervals of the receivers, in seconds. Of several pauses after errors, the last one repeats."""

    signal_pauses: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 30.0)
    """Pauses between tries to signal an unreachable zone."""
    zones: float = 10.0
    """Interval between two listings of the landing zones."""
    queue_poll: int = 20
    """Duration of a long poll: the maximum of SQS."""
    queue_pauses: tuple[float, ...] = (1.0, 5.0, 15.0, 60.0)
    """Pauses between tries to poll the queue after an error."""
    folder_check: float = 2.0
    """Interval between two checks that the watched folders are still the wanted ones."""
    folder_pauses: tuple[float, ...] = (1.0, 2.0, 5.0, 30.0, 600.0)
    """Pauses between tries while the system refuses to watch."""


TIMING = ReceiverTiming()


def pause_after(pauses: tuple[float, ...], failures: int) -> float:
    """Return the pause after the given number of failures, at least one."""
    return pauses[min(failures, len(pauses)) - 1]
