"""Next commands for a run with quarantined rows, for the person who decides, and a hint about rehearsals."""

from sluice.command_line import COMMAND
from sluice.contracts.run import RunResult
from sluice.identifiers import REHEARSAL_SUFFIX


def hint_at_rehearsal(result: RunResult) -> str:
    """Return a sentence if a run of `rehearse` was stopped by a check: empty for any other run."""
    if not is_caught_rehearsal(result.pipeline, result.outcome):
        return ""
    return "`rehearse` planted faults for this run, and it ends like this if the checks catch them: nothing is wrong"


def is_caught_rehearsal(pipeline: str, outcome: str | None) -> bool:
    """Return True if checks stopped a run of `rehearse`, which is its purpose."""
    return outcome == "discarded" and pipeline.endswith(REHEARSAL_SUFFIX)


def next_steps(result: RunResult, released: str = "", command: str = COMMAND) -> dict[str, str]:
    """Return the commands that show quarantined rows and decide about them, by purpose.

    Args:
        released: run whose quarantine this run released or repaired. The quarantine is kept unless this run published.
        command: the reader's command for starting the command line.
    """
    if released:
        run = released if result.outcome in ("quarantined", "discarded", "cancelled") else ""
    else:
        run = result.run_id if has_quarantine(result) else ""
    if run:  # a run that failed may have written only a part: `quarantine show` says if its rows can be released
        deciding = quarantine_commands(run, command, may_release=result.outcome != "failed")
        return {"to look": f"{command} quarantine show {run}", **deciding}
    if result.outcome == "published" and result.bad_rows:
        return {"to look": f"{command} quarantine show {result.run_id}"}
    return {}


def has_quarantine(result: RunResult) -> bool:
    """Return True if a run left a quarantined branch when it ended."""
    return result.outcome in ("quarantined", "failed") and bool(result.branch)


def quarantine_commands(run: str, command: str = COMMAND, *, may_release: bool = True) -> dict[str, str]:
    """Return the commands that decide about a quarantined branch, by purpose.

    Args:
        may_release: False if the branch may contain an incomplete write, or a partition that its backfill publishes.
    """
    publishing = {
        "to release": f"{command} quarantine release {run}",
        "to repair": f'{command} quarantine repair {run} --sql "UPDATE ..."',
    }
    return {**(publishing if may_release else {}), "to discard": f"{command} quarantine discard {run}"}
