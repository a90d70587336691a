"""Result of a rehearsal for each check: fault caught, fault not caught, or check not rehearsed."""

from collections.abc import Mapping, Sequence
from typing import Literal

from generation.rehearsal import FaultBatch, PlantedFault, RehearsalPlan
from sluice.base_model import StrictModel
from sluice.checks.base import Check
from sluice.checks.verdicts import CheckResult, Verdict

RehearsalResult = Literal["caught", "not caught", "refuses good rows", "not rehearsed"]
_WRONG: tuple[RehearsalResult, ...] = ("not caught", "refuses good rows")
_STOPPED_BY_AUDIT, _NO_ANSWER = 3, 4
"""Exit codes of the command line, as for a run whose audit fails, or whose checks could not be answered."""


class RehearsedCheck(StrictModel):
    """One check of a rehearsal."""

    check: str
    """Its label, as `generate --fault` accepts it."""
    fault: str = ""
    """Description of the planted fault."""
    result: RehearsalResult
    verdict: Verdict | None = None
    """Verdict of the run with its fault, or of the run of the good rows if the check refuses them."""
    why: str = ""


Results = Mapping[int, RehearsedCheck]
"""Results by the position of the check in the pipeline."""


def not_planted(plan: RehearsalPlan) -> Results:
    """Return a result for each check without a fault."""
    return {index: _not_rehearsed(plan.labels[index], why) for index, why in plan.left_out.items()}


def refused_good_rows(plan: RehearsalPlan, verdicts: Mapping[int, CheckResult]) -> Results:
    """Return results for all checks if any refuses good rows, because faults prove nothing then; else none."""
    refusing = {index: verdict for index, verdict in verdicts.items() if verdict.blocks}
    if not refusing:
        return {}
    planted = [fault for batch in plan.batches for fault in batch.faults]
    others = {each.index: _not_rehearsed(plan.labels[each.index], "the good rows were refused") for each in planted}
    return {
        **others,
        **{
            index: RehearsedCheck(
                check=plan.labels[index], result="refuses good rows", verdict=verdict.verdict, why=_evidence(verdict)
            )
            for index, verdict in refusing.items()
        },
    }


def rehearsed_batch(
    plan: RehearsalPlan, batch: FaultBatch, checks: Sequence[Check], verdicts: Mapping[int, CheckResult], reason: str
) -> Results:
    """Return the results of a batch's run for the checks whose faults it contained.

    Args:
        checks: checks of the pipeline.
        verdicts: verdicts of the run, by the position of the check in the pipeline.
        reason: the way the run ended, for checks without a verdict.
    """
    return {
        fault.index: _rehearsed(plan.labels[fault.index], fault, checks[fault.index], verdicts.get(fault.index), reason)
        for fault in batch.faults
    }


def _rehearsed(
    label: str, fault: PlantedFault, check: Check, verdict: CheckResult | None, reason: str
) -> RehearsedCheck:
    if verdict is None or verdict.verdict == "error":
        why = reason if verdict is None else _evidence(verdict)
        return _not_rehearsed(label, why).model_copy(update={"fault": fault.what})
    may_warn = check.severity == "warn" or fault.expected == "warn"
    caught = verdict.verdict == "fail" or (verdict.verdict == "warn" and may_warn)
    why = "" if caught else _evidence(verdict)
    result: RehearsalResult = "caught" if caught else "not caught"
    return RehearsedCheck(check=label, fault=fault.what, result=result, verdict=verdict.verdict, why=why)


def _not_rehearsed(label: str, why: str) -> RehearsedCheck:
    return RehearsedCheck(check=label, result="not rehearsed", why=why)


def _evidence(verdict: CheckResult) -> str:
    return verdict.message or f"the run observed {verdict.observed}, and expected {verdict.expected}"


def rehearsal_exit_code(checks: Sequence[RehearsedCheck]) -> int:
    """Return the exit code of a rehearsal."""
    results = {each.result for each in checks}
    if results.intersection(_WRONG):
        return _STOPPED_BY_AUDIT
    return _NO_ANSWER if "not rehearsed" in results else 0


def describe_rehearsal(checks: Sequence[RehearsedCheck]) -> str:
    """Return one sentence with the number of checks that caught their faults, and of the others by result."""
    counts = {result: sum(each.result == result for each in checks) for result in RehearsalResult.__args__}  # type: ignore[attr-defined]
    more = [f"{count} {result}" for result, count in counts.items() if count and result != "caught"]
    return ", ".join([f"{counts['caught']} of {len(checks)} checks caught their fault", *more])
