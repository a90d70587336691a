"""Endings of a run: the outcome by cause, and the fate of its branch."""

from sluice.audit.observed_values import observed_text
from sluice.base_model import StrictModel
from sluice.causes import Cause
from sluice.checks.verdicts import CheckResult, count_verdicts
from sluice.contracts.publish import Publication
from sluice.contracts.run import Outcome
from sluice.pipeline.model import OnFailure
from sluice.redaction import redacted


class RunEnding(StrictModel):
    """Ending of a run that does not publish."""

    outcome: Outcome
    cause: Cause
    keep_branch: bool
    """True if the content of the branch is kept in quarantine, for a person."""

    def final_outcome(self, *, is_kept: bool) -> Outcome:
        """Return the final outcome: `discarded` instead of `quarantined` if no branch was kept."""
        return "discarded" if self.outcome == "quarantined" and not is_kept else self.outcome


def ending(cause: Cause, on_failure: OnFailure, *, may_keep: bool = True) -> RunEnding:
    """Decide the outcome of a run that does not publish, and the fate of its branch.

    A run is skipped if main contains its input, or if a compaction finds nothing to do. After a failed audit, a
    rejection or an expired approval, the pipeline's `on_failure` decides. The branch of a cancelled run, or of a run
    with invalid or changed input, is discarded. After any other error it is kept for a person.

    Args:
        may_keep: False if a quarantine is of no use: another branch, or main, contains the rows of the run, or the run
            was not to publish.
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


def describe_blocking_checks(checks: list[CheckResult], *, show_values: bool = False) -> str:
    """Describe the checks that keep a branch out of main, for a person.

    Args:
        show_values: True if the text may quote values of rows. The report has them in any case.
    """
    blocking = [check for check in checks if check.blocks]
    named = [
        f"{check.title} of {check.table}: "
        + (check.message or f"observed {observed_text(check, show_values=show_values)}, expected {check.expected}")
        for check in blocking[:5]
    ]
    more = [f"and {len(blocking) - 5} more"] if len(blocking) > 5 else []
    return redacted(f"the audit failed with {count_verdicts(checks)}: {'; '.join([*named, *more])}")


def describe_overtaken(publication: Publication) -> str:
    """Describe the tables that checks read and main changed right before the merge; empty if there are none."""
    if not publication.overtaken:
        return ""
    return (
        f"main changed {', '.join(publication.overtaken)} right before the merge, too late to run the checks "
        "again: they read the version before that change"
    )
