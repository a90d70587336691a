"""Exit codes of backfills."""

from sluice.backfills.progress import DONE, count_states, partition_states
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.backfill import BackfillState, BackfillStatus, JointPublish, PartitionNote, PartitionState
from sluice.contracts.run import RunResult
from sluice.publishing.exit_codes import exit_code

_INVALID = 2
_BY_STATE: dict[PartitionState, int] = {"failed": 6, "kept out": 3, "cancelled": 5}
_WORST_FIRST = (6, 7, 2, 3, 4, 5)


def partitions_exit_code(state: BackfillState) -> int:
    """Return 0 if every partition was published or skipped, else the code of the worst ending."""
    states = partition_states(state)
    codes = {_code(states[name], note) for name, note in state.notes.items()}
    noted = {states[name] for name in state.notes}  # the number of notes is limited, but each kind has at least one
    return _worst(codes | {_BY_STATE.get(each, 0) for each in states.values() if each not in noted})


def joint_exit_code(joint: JointPublish | None) -> int:
    """Return the exit code of the joint merge; 0 if partitions are published singly, or if it has not ended."""
    if joint is None or joint.ended is None or joint.ended.is_done:
        return 0
    if joint.ended.outcome == "refused":
        return _INVALID
    outcome, cause = joint.ended.outcome, joint.ended.cause
    result = RunResult(run_id="", workflow_id="", pipeline="", outcome=outcome, cause=cause)
    return exit_code(result) or _BY_STATE["failed"]


def backfill_exit_code(now: BackfillStatus, workflow: str) -> int:
    """Return the exit code of a backfill: that of its worst ending, or 6 if its workflow was ended by force.

    Args:
        workflow: status of its workflow: `running`, `completed`, `canceled`, `terminated` and so on.
    """
    code = _worst({partitions_exit_code(now.progress), joint_exit_code(now.together)})
    if workflow == "running":
        return code
    if workflow == "canceled":
        return code or _BY_STATE["cancelled"]
    return _BY_STATE["failed"] if workflow != "completed" or _is_unfinished(now) else code


def _is_unfinished(now: BackfillStatus) -> bool:
    counts = count_states(now.progress)
    has_no_merge = now.together is not None and now.together.ended is None
    return bool(counts["running"] or counts["waiting"]) or has_no_merge


def option_to_repeat(last: BackfillStatus) -> str:
    """Return the option that a repeated start needs if main has younger partitions than the failed ones, else ""."""
    return f" {OVER_YOUNGER}" if any(OVER_YOUNGER in note.reason for note in last.progress.notes.values()) else ""


def not_published(last: BackfillStatus) -> list[str]:
    """Return the partitions that the last backfill did not bring to main.

    Partitions that are published together are not on main before their joint merge.
    """
    has_merge = last.together is None or (last.together.ended is not None and last.together.ended.is_done)
    states = partition_states(last.progress).items()
    return [name for name, state in states if state not in DONE or not has_merge]


def _worst(codes: set[int]) -> int:
    return next((code for code in _WORST_FIRST if code in codes), 0)


def _code(state: PartitionState, note: PartitionNote) -> int:
    if state not in _BY_STATE:
        return 0
    if note.outcome == "refused":
        return _INVALID
    result = RunResult(run_id="", workflow_id="", pipeline="", outcome=note.outcome, cause=note.cause)
    return exit_code(result) or _BY_STATE[state]
