"""Exit codes of the command line for runs."""

from sluice.causes import Cause
from sluice.contracts.run import Outcome, RunResult

_EXIT_BY_OUTCOME: dict[Outcome, int] = {"published": 0, "checked": 0, "skipped": 0, "cancelled": 5, "failed": 6}
_EXIT_BY_CAUSE: dict[Cause, int] = {
    "audit": 3, "rejected": 4, "expired": 4, "unreachable": 7, "nothing_to_do": 0, "already_published": 0,
}  # fmt: skip


def exit_code(result: RunResult) -> int:
    """Return the exit code of the command line for a run, as the README lists them."""
    by_cause = _EXIT_BY_CAUSE.get(result.cause) if result.cause and result.outcome != "published" else None
    if by_cause is not None:
        return by_cause
    return _EXIT_BY_OUTCOME.get(result.outcome, 6) if result.outcome else 6
