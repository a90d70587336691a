"""Decide if a run that has ended can be started again from its request alone."""

from sluice.contracts.arrivals import zone_starter
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunRequest

_RESTARTABLE = ("failed", "cancelled", "discarded")
"""Outcomes of runs that published nothing, and whose rows a release does not publish either."""


def may_start_again(result: RunResult) -> bool:
    """Return True if a run ended in a way that a new start may change."""
    return result.outcome in _RESTARTABLE


def start_again_refusal(request: RunRequest | None, result: RunResult) -> str:
    """Return the reason why a run cannot be started again from its request; empty if it can.

    The request has the whole pipeline and the identity of the input. The new run stops if the files of its source are
    others by then, because a worker identifies them again.

    Args:
        request: the request of the run; None if Temporal no longer has it.
        result: the result of the run; `may_start_again` is true for it.
    """
    if request is None:
        return "Temporal no longer has its request: start its pipeline file."
    name, write = request.pipeline.name, request.pipeline.write
    reasons = [
        (request.resume, "It released or repaired a quarantine: release or repair that again."),
        (request.restore, "It was a roll-back: roll the runs back again."),
        (
            request.target or request.asked_by,
            f"A backfill started it, and starts it again: `backfill retry {name}`.",
        ),
        (
            request.starter == zone_starter(name),
            f"Its landing zone decides about its files: `arrivals {name}` shows them. If the zone is not deployed, "
            "start its pipeline file.",
        ),
        (result.cause == "input_changed", "Its files changed: start its pipeline file, which identifies them again."),
        (
            not write.built_in and not write.source,
            "Its input is its program, which may have changed: start its pipeline file.",
        ),
    ]
    return next((reason for applies, reason in reasons if applies), "")
