"""How a campaign ended, as one exit code."""

from sluice.campaigns.campaign import partition_states
from sluice.contracts.backfill import CampaignState, JointPublish, PartitionNote, PartitionState
from sluice.contracts.run import RunResult
from sluice.publishing.outcomes import exit_code

_INVALID = 2
_BY_STATE: dict[PartitionState, int] = {"failed": 6, "kept out": 3, "cancelled": 5}
_WORST_FIRST = (6, 7, 2, 3, 4, 5)


def campaign_exit_code(state: CampaignState) -> int:
    """Return 0 where each partition was published or skipped, or else the code of the worst end of one."""
    codes = {_code(each, state.notes.get(name)) for name, each in partition_states(state).items()}
    return next((code for code in _WORST_FIRST if code in codes), 0)


def joint_exit_code(joint: JointPublish | None) -> int:
    """Return the code of the merge of all partitions; 0 where each is published by itself, or it has not ended."""
    if joint is None or joint.ended is None or joint.ended.is_done:
        return 0
    if joint.ended.outcome == "refused":
        return _INVALID
    outcome, cause = joint.ended.outcome, joint.ended.cause
    result = RunResult(run_id="", workflow_id="", pipeline="", outcome=outcome, cause=cause)
    return exit_code(result) or _BY_STATE["failed"]


def _code(state: PartitionState, note: PartitionNote | None) -> int:
    if state not in _BY_STATE or note is None:
        return _BY_STATE.get(state, 0)
    if note.outcome == "refused":
        return _INVALID
    result = RunResult(run_id="", workflow_id="", pipeline="", outcome=note.outcome, cause=note.cause)
    return exit_code(result) or _BY_STATE[state]
