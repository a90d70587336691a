"""Changes of the workflow that runs from before them are spared, so that each replays as it began.

A run follows the revision that its request names: whoever started it fixed that for good, and it costs no event of
history. What was changed before there were revisions is told by patches, which cost two events each.
"""

from dataclasses import dataclass

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run import REVISION, RunRequest


@dataclass(frozen=True)
class Change:
    """One change: the revision that has it, and the patch by which runs without a revision may have it."""

    since: int
    patch: str = ""

    def is_in(self, request: RunRequest) -> bool:
        """Return whether the run that this request started has the change."""
        return request.revision >= self.since or (bool(self.patch) and workflow.patched(self.patch))


REBASE = Change(1, "rebase")
"""Before, a run that main overtook wrote again."""
TURNS = Change(1, "turns")
"""Before, such a run stepped back for a moment, instead of standing in line."""
SHORT_HOPS = Change(1, "short-hops")
"""Before, every act was a step of its own."""
NEVER_BEGAN = Change(1, "never-began")
"""Before, an attempt that no worker began counted like every other."""
STATEMENTS = Change(1, "statements")
"""Before, decisions were taken as they came."""
RECORDED = Change(1, "record-run")
"""Before, runs were not written down in the ledger."""
FEWER_STEPS = Change(1)
"""Before, a run stood in line before its first take-over, which was a step, as was the audit after it, and a notice
that nobody was to get."""


def require_known_revision(request: RunRequest) -> None:
    """Make sure that this worker knows the revision of a run.

    Raises:
        RuntimeError: it does not. That fails the workflow's task and not the run, which waits for another worker.
    """
    if request.revision > REVISION:
        raise RuntimeError(
            f"the run follows revision {request.revision} of the workflow, and this worker knows {REVISION}: "
            "bring the worker up to date; the run goes on from here"
        )
