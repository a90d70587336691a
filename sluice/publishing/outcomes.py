"""How a run ends: which outcome, what becomes of its branch, and which exit code stands for it."""

from sluice.audit.verdicts import CheckResult, count_verdicts
from sluice.base_model import Model
from sluice.contracts.run import Cause, Outcome, RunResult
from sluice.pipeline.model import OnFailure

_CAUSES_BY_ERROR: dict[str, Cause] = {
    "InvalidPipeline": "invalid",
    "InvalidInput": "invalid",
    "NothingWritten": "invalid",
    "WriteRefused": "invalid",
    "BadEnvironment": "invalid",
    "AlreadyPublished": "already_published",
    "NothingToDo": "nothing_to_do",
    "ServiceUnavailable": "unreachable",
}
_EXIT_BY_OUTCOME: dict[Outcome, int] = {"published": 0, "cancelled": 5, "failed": 6}
_EXIT_BY_CAUSE: dict[Cause, int] = {
    "audit": 3, "rejected": 4, "expired": 4, "already_published": 2, "unreachable": 7, "nothing_to_do": 0,
}  # fmt: skip


class RunEnding(Model):
    """How a run that does not publish ends."""

    outcome: Outcome
    cause: Cause
    keep_branch: bool
    """Whether what the branch holds is kept, quarantined, for a person."""


def ending(cause: Cause, on_failure: OnFailure) -> RunEnding:
    """Decide how a run ends that something stopped.

    A verdict and a person's no end it as the pipeline says. A cancelled run is wanted by nobody, and
    invalid input has brought nothing worth a look. What nobody could foresee is kept for a look.
    """
    if cause in ("audit", "rejected", "expired"):
        kept = on_failure == "quarantine"
        return RunEnding(outcome="quarantined" if kept else "discarded", cause=cause, keep_branch=kept)
    if cause == "cancelled":
        return RunEnding(outcome="cancelled", cause=cause, keep_branch=False)
    if cause == "nothing_to_do":
        return RunEnding(outcome="discarded", cause=cause, keep_branch=False)
    return RunEnding(outcome="failed", cause=cause, keep_branch=cause in ("error", "unreachable"))


def cause_of(error_type: str) -> Cause:
    """Return the cause that an error of this type, by name, stands for."""
    return _CAUSES_BY_ERROR.get(error_type, "error")


def describe_blocking_checks(checks: list[CheckResult]) -> str:
    """Say which checks keep a branch out of main, for a person."""
    blocking = [check for check in checks if check.blocks]
    named = [
        f"{check.title} of {check.table}: {check.message or f'found {check.observed}, expected {check.expected}'}"
        for check in blocking[:5]
    ]
    more = [f"and {len(blocking) - 5} more"] if len(blocking) > 5 else []
    return f"the audit says {count_verdicts(checks)}: {'; '.join([*named, *more])}"


def exit_code(result: RunResult) -> int:
    """Return the exit code that stands for how the run ended, as the README lists them."""
    by_cause = _EXIT_BY_CAUSE.get(result.cause) if result.cause and result.outcome != "published" else None
    if by_cause is not None:
        return by_cause
    return _EXIT_BY_OUTCOME.get(result.outcome, 6) if result.outcome else 6
