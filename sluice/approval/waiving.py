"""Rules of waiving: the waivers that a decision needs, and the checks that a set of decisions waives."""

from collections.abc import Sequence
from datetime import datetime

from sluice.approval.decisions import AwaitedDecision, Decision
from sluice.approval.waivers import (
    GRACE,
    WaivableCheck,
    WaivedCheck,
    Waiver,
    describe_checks,
    parse_until,
    reason_problem,
    until_problem,
    waive_options,
    waiver_names,
)
from sluice.redaction import redacted


def waiver_refusal(decision: Decision, awaited: AwaitedDecision, now: datetime) -> str | None:
    """Return the reason why a decision does not count because of its waivers, or None if they are right.

    An approval waives exactly the failed checks that wait for a waiver. Every other decision waives nothing.
    """
    waivers, waiting = decision.waivers, awaited.to_waive
    if not decision.approve:
        return "a rejection waives nothing: leave the waivers out" if waivers else None
    if not waiting:
        return "no failed check waits for a waiver: approve without --waive" if waivers else None
    return _incomplete(waivers, awaited, now)


def _incomplete(waivers: Sequence[Waiver], awaited: AwaitedDecision, now: datetime) -> str | None:
    """Return the reason why waivers do not cover each waiting check exactly once, or None if they do."""
    waived: set[tuple[str, str]] = set()
    for waiver in waivers:
        matching = {check.key for check in awaited.to_waive if _is_for(waiver, check)}
        if why := _waiver_problem(waiver, matching, awaited, now):
            return why
        if matching <= waived:
            return f"the decision waives {waiver.check[:200]} twice"
        waived |= matching
    left = [check for check in awaited.to_waive if check.key not in waived]
    return f"the audit failed, and an approval has to waive {_missing(left)}" if left else None


def _waiver_problem(
    waiver: Waiver, matching: set[tuple[str, str]], awaited: AwaitedDecision, now: datetime
) -> str | None:
    name = f"{waiver.check} of {waiver.table}" if waiver.table else waiver.check
    if len(matching) != 1:
        why = "is the name of several of them" if matching else "is not one of them"
        return f"the checks to waive are {', '.join(waiver_names(awaited.to_waive))}: {name[:200]!r} {why}"
    if awaited.signed and not (waiver.table and waiver.fingerprint):
        return "approvers have keys, so a waiver names the table and the fingerprint of its check: use `approve`"
    return reason_problem(waiver.reason) or until_problem(waiver.until, now)


def _missing(checks: Sequence[WaivableCheck]) -> str:
    return f"{describe_checks(checks)}, with a reason and an end: {waive_options(checks)} --reason … --until DATE"


def secret_problem(waivers: Sequence[Waiver]) -> str:
    """Return a message if the reason of a waiver looks like it contains a secret, or "" if none does.

    Sluice refuses such a reason and does not redact it, because people sign it as it is.
    """
    if any(redacted(waiver.reason) != waiver.reason for waiver in waivers):
        return "the reason of the waiver contains what looks like a secret, and main's history keeps it: leave it out"
    return ""


def completed_waivers(decision: Decision, waiting: Sequence[WaivableCheck]) -> list[Waiver]:
    """Return the waivers of a decision that counts, each with the table and the fingerprint of its check."""
    completed = []
    for waiver in decision.waivers:
        check = next((check for check in waiting if _is_for(waiver, check)), None)
        fields = {"table": check.table, "fingerprint": check.fingerprint} if check else {}
        completed.append(waiver.model_copy(update=fields))
    return completed


def granted_waivers(
    decisions: Sequence[Decision], checks: Sequence[WaivableCheck], run_id: str, workflow_id: str
) -> list[WaivedCheck]:
    """Return the checks that every one of the decisions waives, each until the earliest end that is stated.

    Args:
        run_id: the run that the decisions are about.
    """
    granted = []
    for check in checks:
        given = [_waiver_of(decision, check) for decision in decisions]
        waivers = [waiver for waiver in given if waiver]
        if not waivers or len(waivers) < len(given):
            continue
        try:
            until = min(parse_until(waiver.until) for waiver in waivers)
        except ValueError:
            continue
        fields = check.model_dump(include=set(WaivableCheck.model_fields))
        granted.append(
            WaivedCheck(
                **fields,
                by=[decision.by for decision in decisions],
                reason=_reasons(decisions, waivers),
                until=until.isoformat(),
                run_id=run_id,
                workflow_id=workflow_id,
            )
        )
    return granted


def ended_waivers(waived: Sequence[WaivedCheck], now: datetime) -> list[WaivedCheck]:
    """Return the waivers that ended too long ago for a merge: more than `GRACE`."""
    return [each for each in waived if parse_until(each.until) + GRACE < now]


def describe_ended(waived: Sequence[WaivedCheck]) -> str:
    """Return the message that waivers ended before the merge."""
    return f"the waiver of {describe_checks(waived)} ended before the merge"


def silent_waivers(decisions: Sequence[Decision], waived: Sequence[WaivedCheck]) -> str:
    """Return a message if a merge does not name a check that its approvals waive, or "" if it names all."""
    named = {each.key for each in waived}
    given = [waiver for decision in decisions for waiver in decision.waivers]
    hidden = [waiver.check for waiver in given if (waiver.table, waiver.fingerprint) not in named]
    return f"the merge does not name {hidden[0][:200]}, which its approvals waive" if hidden else ""


def unwaived_error(
    waived: Sequence[WaivedCheck], granted: Sequence[WaivedCheck], in_force: Sequence[WaivedCheck], now: datetime
) -> str:
    """Return the reason why a merge may not rely on waivers, or "" if it may.

    Args:
        waived: the waived checks that the run relies on.
        granted: the checks that the verified approvals of the run waive.
        in_force: the checks that verified approvals of published runs waive.
    """
    unverified = [each for each in waived if each not in granted and each not in in_force]
    if unverified:
        return f"no approver has waived {describe_checks(unverified)} as the run says, or the waiver has ended"
    ended = ended_waivers(waived, now)
    return describe_ended(ended) if ended else ""


def _is_for(waiver: Waiver, check: WaivableCheck) -> bool:
    return (
        waiver.check == check.check
        and waiver.table in ("", check.table)
        and waiver.fingerprint in ("", check.fingerprint)
    )


def _waiver_of(decision: Decision, check: WaivableCheck) -> Waiver | None:
    """Return the waiver of a check in a recorded decision, which names the table and the fingerprint."""
    if not decision.approve:
        return None
    exact = (check.table, check.check, check.fingerprint)
    return next((each for each in decision.waivers if (each.table, each.check, each.fingerprint) == exact), None)


def _reasons(decisions: Sequence[Decision], waivers: Sequence[Waiver]) -> str:
    """Return the reason that all people gave, or each reason with the name of the person who gave it."""
    reasons = dict.fromkeys(waiver.reason.strip() for waiver in waivers)
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(
        f"{decision.by}: {waiver.reason.strip()}" for decision, waiver in zip(decisions, waivers, strict=True)
    )
