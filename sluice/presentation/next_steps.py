"""What a person can do about a run whose rows are quarantined."""

from sluice.command_line import COMMAND
from sluice.contracts.run import RunResult


def next_steps(result: RunResult, released: str = "", command: str = COMMAND) -> dict[str, str]:
    """Return the commands that look at quarantined rows and decide on them, by what each is for.

    Args:
        released: the run whose quarantine this one released or repaired; it is kept unless this one published.
        command: how the reader starts the command line.
    """
    if released:
        run = released if result.outcome in ("quarantined", "discarded", "cancelled") else ""
    else:
        run = result.run_id if result.outcome == "quarantined" and result.branch else ""
    if not run:
        return {}
    return {
        "to look": f"{command} quarantine show {run}",
        "to decide": 'release, repair --sql "UPDATE …" or discard, in place of show',
    }
