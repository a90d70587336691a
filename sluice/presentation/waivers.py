"""Describe the waivers of failed checks in messages: author, end and reason."""

from collections.abc import Sequence

from sluice.approval.waivers import WaivedCheck, waive_command
from sluice.checks.verdicts import CheckResult, count_verdicts
from sluice.command_line import COMMAND
from sluice.contracts.run import RunResult
from sluice.times import format_time

WAIVED = "WAIVED"
"""Word next to the verdict of a waived check, in every report."""


def waiver_of(check: CheckResult, waived: Sequence[WaivedCheck]) -> WaivedCheck | None:
    """Return the waiver of a verdict, or None if it has none."""
    if check.verdict != "fail":
        return None
    return next((each for each in waived if (each.table, each.index) == (check.table, check.index)), None)


def shown_verdict(check: CheckResult, waived: Sequence[WaivedCheck]) -> str:
    """Return a verdict, marked if it is waived: `fail WAIVED`."""
    return f"{check.verdict} {WAIVED}" if waiver_of(check, waived) else check.verdict


def count_audit(result: RunResult) -> str:
    """Return the number of verdicts of each kind: `12 pass, 1 fail (waived)`."""
    return count_verdicts(result.checks, sum(waiver_of(check, result.waived) is not None for check in result.checks))


def describe_waiver(waived: WaivedCheck) -> str:
    """Describe a waiver by its authors, end and reason."""
    return f"waived by {', '.join(waived.by)} until {format_time(waived.until)}: {waived.reason}"


def waiver_lines(result: RunResult) -> list[str]:
    """Return a line for each waived check of a run. It names the run that granted the waiver, if another did."""
    lines = []
    for each in result.waived:
        granted = f" (granted for {each.workflow_id or each.run_id})" if each.run_id != result.run_id else ""
        lines.append(f"{each.check} of {each.table} failed, {describe_waiver(each)}{granted}")
    return lines


def how_to_waive(result: RunResult, command: str = COMMAND) -> str:
    """Return the command that waives the checks for which a run waits; empty if no check waits for a waiver."""
    to_waive = result.approval.to_waive if result.approval else []
    return waive_command(result.workflow_id, to_waive, command) if to_waive else ""


def waiting_lines(result: RunResult) -> list[str]:
    """Return a line for each failed check that waits for a waiver."""
    to_waive = result.approval.to_waive if result.approval else []
    return [f"{check.check} of {check.table} failed: waive it, or reject the run" for check in to_waive]
