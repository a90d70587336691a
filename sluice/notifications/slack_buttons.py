"""Approve and reject buttons of Slack messages, and the requests that Slack sends when a person clicks one."""

import json
from typing import Any
from urllib.parse import parse_qs

from pydantic import ValidationError

from sluice.base_model import StrictModel
from sluice.contracts.run import Notification
from sluice.contracts.slack import SlackInput, SlackPayload
from sluice.errors import InvalidPipeline

APPROVE, REJECT = "sluice_approve", "sluice_reject"
"""Names of the buttons. The form for the reason of a rejection has the name of its button."""
_REASON = "reason"
_REASON_LIMIT = 500
"""Maximum length of a reason, in characters: the same as on the page."""


class ShownRun(StrictModel):
    """The run and the report that a message shows. Its buttons carry it, so that a decision is about nothing else."""

    workflow_id: str
    run_id: str
    report: str
    """Name of the report: the first digits of its hash and of its digest."""


class SlackDecision(StrictModel):
    """A button that a person pressed, or the reason that a person sent."""

    member: str
    """Id of the person on Slack."""
    approve: bool
    shown: ShownRun
    channel: str
    thread: str
    """Id of the message with the buttons, under which answers stand."""
    trigger: str = ""
    """Permission of Slack to open a form for the person, for some seconds."""
    reason: str | None = None
    """Reason of a rejection; None until the person has sent the form."""


def decision_buttons(notification: Notification, report: str) -> list[dict[str, Any]]:
    """Return the block with the buttons of a run that waits, or nothing if nobody can decide on Slack.

    Slack cannot sign a decision, so runs whose approvers have keys get no buttons. A waiver needs the page, too.
    """
    result = notification.result
    record = result.approval
    if not notification.waiting_until or not report or (record and record.signed):
        return []
    shown = ShownRun(workflow_id=result.workflow_id, run_id=result.run_id, report=report).model_dump_json()
    audited = (result.audited_hash or "")[:7]
    question = {
        "title": _plain(f"Approve {audited}"),
        "text": _plain("One merge publishes exactly this hash."),
        "confirm": _plain("Approve"),
        "deny": _plain("Go back"),
    }
    approve = {**_button(APPROVE, f"Approve {audited}", "primary", shown), "confirm": question}
    reject = _button(REJECT, f"Reject {audited} …", "danger", shown)
    return [{"type": "actions", "elements": [reject] if record and record.to_waive else [approve, reject]}]


def reason_form(decision: SlackDecision) -> dict[str, Any]:
    """Return the form that asks for the reason of a rejection."""
    field = {"type": "plain_text_input", "action_id": _REASON, "multiline": True, "max_length": _REASON_LIMIT}
    audited = decision.shown.report.partition(":")[0][:7]
    return {
        "type": "modal",
        "callback_id": REJECT,
        "private_metadata": decision.model_dump_json(include={"shown", "channel", "thread"}),
        "title": _plain(f"Reject {audited}"),
        "submit": _plain("Reject"),
        "close": _plain("Go back"),
        "blocks": [{"type": "input", "block_id": _REASON, "label": _plain("Reason"), "element": field}],
    }


def missing_reason() -> dict[str, Any]:
    """Return the answer to a form without a reason."""
    return {"response_action": "errors", "errors": {_REASON: "A rejection needs a reason."}}


def read_slack_decision(body: bytes) -> SlackDecision | None:
    """Return the decision in a request of Slack, or None if the request is about something else.

    Raises:
        InvalidPipeline: the request is not one of Slack's interactive requests.
    """
    try:
        (payload,) = parse_qs(body.decode(), strict_parsing=True)["payload"]
        given = SlackPayload.model_validate_json(payload)
        return _pressed(given) if given.type == "block_actions" else _submitted(given)
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError) as error:
        raise InvalidPipeline("this is not a request of Slack's buttons") from error


def _pressed(given: SlackPayload) -> SlackDecision | None:
    action = next((each for each in given.actions if each.action_id in (APPROVE, REJECT)), None)
    if action is None:
        return None
    return SlackDecision(
        member=given.user.id,
        approve=action.action_id == APPROVE,
        shown=ShownRun.model_validate_json(action.value),
        channel=given.container.channel_id,
        thread=given.container.message_ts,
        trigger=given.trigger_id,
    )


def _submitted(given: SlackPayload) -> SlackDecision | None:
    if given.type != "view_submission" or given.view.callback_id != REJECT:
        return None
    reason = given.view.state.values.get(_REASON, {}).get(_REASON, SlackInput()).value or ""
    stated = json.loads(given.view.private_metadata)
    return SlackDecision.model_validate({**stated, "member": given.user.id, "approve": False, "reason": reason})


def _button(action: str, text: str, style: str, value: str) -> dict[str, Any]:
    return {"type": "button", "action_id": action, "text": _plain(text), "style": style, "value": value}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
