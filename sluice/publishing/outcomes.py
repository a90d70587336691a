"""Endings of a run: the outcome by cause, whether its branch is kept, and the exit code."""

from sluice.audit.observed import describe_observed
from sluice.base_model import Model
from sluice.checks import REGISTRY
from sluice.checks.verdicts import CheckResult, count_verdicts
from sluice.contracts.publish import Publication
from sluice.contracts.run import Cause, Outcome, RunResult
from sluice.pipeline.model import OnFailure
from sluice.redaction import redacted
from sluice.row_values import HIDDEN_VALUE

_CAUSES_BY_ERROR: dict[str, Cause] = {
    "InvalidPipeline": "invalid",
    "InvalidInput": "invalid",
    "InputChanged": "input_changed",
    "InputIncomplete": "invalid",
    "NoFiles": "invalid",
    "NothingWritten": "invalid",
    "WriteRefused": "invalid",
    "BadEnvironment": "invalid",
    "AlreadyPublished": "already_published",
    "ManifestUnreadable": "invalid",
    "NothingToDo": "nothing_to_do",
    "ServiceUnavailable": "unreachable",
    "CredentialsExpired": "unreachable",
}
_EXIT_BY_OUTCOME: dict[Outcome, int] = {"published": 0, "checked": 0, "skipped": 0, "cancelled": 5, "failed": 6}
_EXIT_BY_CAUSE: dict[Cause, int] = {
    "audit": 3, "rejected": 4, "expired": 4, "unreachable": 7, "nothing_to_do": 0, "already_published": 0,
}  # fmt: skip


class RunEnding(Model):
    """The ending of a run that does not publish."""

    outcome: Outcome
    cause: Cause
    keep_branch: bool
    """Whether what the branch holds is kept, quarantined, for a person."""

    def final_outcome(self, *, is_kept: bool) -> Outcome:
        """Return the outcome once it is known whether a branch is kept: a quarantine of nothing is `discarded`."""
        return "discarded" if self.outcome == "quarantined" and not is_kept else self.outcome


def ending(cause: Cause, on_failure: OnFailure, *, may_keep: bool = True) -> RunEnding:
    """Decide the outcome of a run that does not publish, and whether its branch is kept.

    A run is skipped where main holds its input, or a compaction finds nothing to do. After a failed audit, a rejection
    or an expired approval the pipeline's `on_failure` decides. The branch of a
    cancelled run, or of one with invalid input, is discarded. After any other error it is kept for a person.

    Args:
        may_keep: whether a quarantine is of use. It is not where another branch, or main, holds the rows of the run,
            nor for a run that was not to publish.
    """
    end = _ending_by_cause(cause, on_failure)
    return end if may_keep else end.model_copy(update={"keep_branch": False})


def _ending_by_cause(cause: Cause, on_failure: OnFailure) -> RunEnding:
    if cause in ("audit", "rejected", "expired"):
        keep = on_failure == "quarantine"
        return RunEnding(outcome="quarantined" if keep else "discarded", cause=cause, keep_branch=keep)
    if cause == "cancelled":
        return RunEnding(outcome="cancelled", cause=cause, keep_branch=False)
    if cause == "checked":
        return RunEnding(outcome="checked", cause=cause, keep_branch=False)
    if cause in ("nothing_to_do", "already_published"):
        return RunEnding(outcome="skipped", cause=cause, keep_branch=False)
    return RunEnding(outcome="failed", cause=cause, keep_branch=cause in ("error", "unreachable"))


def cause_of(error_type: str) -> Cause:
    """Return the cause that an error of this type, by name, stands for."""
    return _CAUSES_BY_ERROR.get(error_type, "error")


def describe_blocking_checks(checks: list[CheckResult], *, show_values: bool = False) -> str:
    """Return, for a person, which checks keep a branch out of main.

    Args:
        show_values: whether it may quote values of rows; the report has them in any case.
    """
    blocking = [check for check in checks if check.blocks]
    named = [
        f"{check.title} of {check.table}: "
        + (check.message or f"observed {observed_text(check, show_values=show_values)}, expected {check.expected}")
        for check in blocking[:5]
    ]
    more = [f"and {len(blocking) - 5} more"] if len(blocking) > 5 else []
    return redacted(f"the audit failed with {count_verdicts(checks)}: {'; '.join([*named, *more])}")


def observed_text(check: CheckResult, *, show_values: bool) -> str:
    """Return what a check observed, hidden if that is a value of rows and such may not be shown."""
    known = REGISTRY.get(check.check)
    may_show = show_values or (known is not None and not known.observes_values)
    return describe_observed(check) if may_show else HIDDEN_VALUE


def describe_overtaken(publication: Publication) -> str:
    """Return, for a person, which tables that checks read main changed right before the merge, or ""."""
    if not publication.overtaken:
        return ""
    return (
        f"main changed {', '.join(publication.overtaken)} right before the merge, too late to ask again: the checks "
        "that read it saw it as it was before"
    )


def exit_code(result: RunResult) -> int:
    """Return the exit code of the command line for a run, as the README lists them."""
    by_cause = _EXIT_BY_CAUSE.get(result.cause) if result.cause and result.outcome != "published" else None
    if by_cause is not None:
        return by_cause
    return _EXIT_BY_OUTCOME.get(result.outcome, 6) if result.outcome else 6
