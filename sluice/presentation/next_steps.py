"""What a person can do about a run whose rows are quarantined."""

from sluice.contracts.run import RunResult

_COMMAND = "python run_workflow.py quarantine"


def next_steps(result: RunResult, released: str = "") -> dict[str, str]:
    """Return the commands that look at quarantined rows and decide on them, by what each is for.

    Args:
        released: the run whose quarantine this one released or repaired; it is kept unless this one published.
    """
    if released:
        run = released if result.outcome in ("quarantined", "discarded", "cancelled") else ""
    else:
        run = result.run_id if result.outcome == "quarantined" and result.branch else ""
    if not run:
        return {}
    return {
        "to look": f"{_COMMAND} show {run}",
        "to decide": 'release, repair --sql "UPDATE …" or discard, in place of show',
    }
