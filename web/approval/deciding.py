"""Send the decision of a person about the report that the person saw, from a form, a program or Slack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fastapi import HTTPException

from runtime.approval.deciding import as_signed, new_decision, send_decision, with_signature
from runtime.approval.shown_report import report_name, shown_report
from runtime.run.find_run import RunLookup
from runtime.run.reported_run import read_status
from sluice.approval.decisions import Decision
from sluice.approval.signatures import signed_decision
from sluice.approval.waiver_request import WaiverRequest
from sluice.contracts.run import WAITING, RunStatus
from sluice.errors import InvalidPipeline
from web.page import Page

LONGEST_STATEMENT = 100_000
"""Maximum length of a signed text, in characters. One with 20 waivers and long reasons is shorter."""


@dataclass(frozen=True)
class StatedDecision:
    """A decision as a person or a program stated it."""

    approve: bool
    by: str = ""
    """Person who decides; empty means the person of the request."""
    reason: str = ""
    waive: Sequence[str] = ()
    """Names of the failed checks to waive."""
    until: str = ""
    """End of the waivers."""
    signed: Decision | None = None
    """The decision that the person signed outside of this page."""
    page_may_sign: bool = True
    """False if the key of the page's owner must not sign, because somebody else decides."""


def with_signed_text(stated: StatedDecision, statement: str, signature: str, run_id: str) -> StatedDecision:
    """Return a decision with the text that the person signed, if there is one.

    Raises:
        InvalidPipeline: the signed text is not that of a decision about the run.
    """
    if not statement and not signature:
        return stated
    return replace(stated, signed=signed_decision(statement, signature, run_id))


async def decide(
    page: Page, lookup: RunLookup, stated: StatedDecision, check_report: Callable[[RunStatus], None]
) -> Decision:
    """Send a decision; return it as the run recorded it.

    Args:
        check_report: raises `InvalidPipeline` if the run waits with another report than the person saw.

    Raises:
        InvalidPipeline: the run has ended or does not wait, or the decision was refused.
        ServiceUnavailable: no worker answers.
        HTTPException: the person may not decide as the stated one.
    """
    decision = await prepare_decision(page, lookup, stated, check_report)
    if stated.signed:
        decision = as_signed(decision, stated.signed)
    elif stated.page_may_sign:
        decision = with_signature(decision, lookup.handle.run_id or "", page.settings.approval)
    counted = await send_decision(lookup.handle, decision)
    page.board.forget()
    return counted


async def prepare_decision(
    page: Page, lookup: RunLookup, stated: StatedDecision, check_report: Callable[[RunStatus], None]
) -> Decision:
    """Return a decision without a signature. The arguments and errors are those of `decide`."""
    if lookup.ended:
        raise InvalidPipeline("the run has ended")
    status = await read_status(lookup)
    check_report(status)
    if not stated.approve and not stated.reason.strip():
        raise InvalidPipeline("a rejection needs a reason")
    request = WaiverRequest(stated.waive, stated.until)
    request.check(stated.reason)
    by = _person(page, stated.by)
    return new_decision(status, approve=stated.approve, by=by, reason=stated.reason, request=request)


def check_waiting_report(
    status: RunStatus, named: str, shown: str = "this page was opened", remedy: str = "Reload the page"
) -> None:
    """Check that the report that a person saw is the one that waits.

    Args:
        named: name of the report that the person saw.
        shown: the moment at which the person saw it.
        remedy: the way in which the person sees the report that waits.

    Raises:
        InvalidPipeline: the run waits with another report, or does not wait.
    """
    if status.stage != WAITING:
        record = status.result.approval
        last = record.decisions[-1] if record and record.decisions else None
        decided = f" It was {'approved' if last.approve else 'rejected'} by {last.by} already." if last else ""
        raise InvalidPipeline(f"the run does not wait for a decision: it is {status.stage}.{decided}")
    waits = report_name(shown_report(status.result))
    if waits != named:
        old, new = named.partition(":")[0][:7], waits.partition(":")[0][:7]
        what = f"{old} is now {new}" if old != new else f"the audit of {new} has other results now"
        raise InvalidPipeline(f"the data changed since {shown}: {what}. {remedy}, then decide")


def _person(page: Page, stated: str) -> str:
    """Return the person who decides. The owner of a page may name another one, as on the command line.

    Raises:
        HTTPException: the request comes from a proxy, and states another person than the proxy.
    """
    own = page.visitor.name
    if page.has_proxy and stated not in ("", own):
        raise HTTPException(403, f"You are {own} on this page, and cannot decide as another person: leave out `by`.")
    return stated or own
