"""Send the decision of a person about the report that the person saw, from a form or from a program."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.approval.deciding import new_decision, send_decision, with_signature
from runtime.run.find_run import RunLookup
from runtime.run.reported_run import read_status
from sluice.approval.decisions import Decision
from sluice.approval.waiver_request import WaiverRequest
from sluice.contracts.run import RunStatus
from sluice.errors import InvalidPipeline
from web.page import Page


@dataclass(frozen=True)
class StatedDecision:
    """A decision as a person or a program stated it."""

    approve: bool
    by: str = ""
    """Person who decides; empty means the person who started the page."""
    reason: str = ""
    waive: Sequence[str] = ()
    """Names of the failed checks to waive."""
    until: str = ""
    """End of the waivers."""


async def decide(
    page: Page, lookup: RunLookup, stated: StatedDecision, check_report: Callable[[RunStatus], None]
) -> Decision:
    """Send a decision; return it as the run recorded it.

    Args:
        check_report: raises `InvalidPipeline` if the run waits with another report than the person saw.

    Raises:
        InvalidPipeline: the run has ended or does not wait, or the decision was refused.
        ServiceUnavailable: no worker answers.
    """
    if lookup.ended:
        raise InvalidPipeline("the run has ended")
    status = await read_status(lookup)
    check_report(status)
    if not stated.approve and not stated.reason.strip():
        raise InvalidPipeline("a rejection needs a reason")
    request = WaiverRequest(stated.waive, stated.until)
    request.check(stated.reason)
    by = stated.by or page.session.person
    decision = new_decision(status, approve=stated.approve, by=by, reason=stated.reason, request=request)
    counted = await send_decision(
        lookup.handle, with_signature(decision, lookup.handle.run_id or "", page.settings.approval)
    )
    page.board.forget()
    return counted
