"""Messages on Slack: one when a run ends, and one when it waits for approval."""

from typing import Any

from sluice.audit.verdicts import count_verdicts
from sluice.contracts.run import Notification, RunResult
from sluice.presentation.changes import describe_change
from sluice.times import format_time

_ICONS = {
    "published": ":white_check_mark:",
    "checked": ":mag:",
    "quarantined": ":no_entry:",
    "discarded": ":wastebasket:",
    "cancelled": ":black_square_for_stop:",
    "failed": ":rotating_light:",
}
_TEXT_LIMIT = 2900
"""Slack refuses a section with more than 3000 characters."""


def headline(notification: Notification) -> str:
    """Return the message in one line, for the notification of a device."""
    result = notification.result
    if notification.waiting_until:
        return f":raised_hand: {result.pipeline} waits for approval"
    return f"{_ICONS.get(result.outcome or '', '')} {result.pipeline}: {result.outcome}".strip()


def blocks(notification: Notification, link: str) -> list[dict[str, Any]]:
    """Return the message as Slack's blocks; `link` leads to the run in the Temporal Web UI."""
    result = notification.result
    lines = [line for line in (_reason(result), *_tables(result), _audit(result)) if line]
    if notification.waiting_until:
        lines += [
            f"Without enough approvals by {format_time(notification.waiting_until)} it is not published.",
            f"`python run_workflow.py approve {result.workflow_id}`",
            f"`python run_workflow.py reject {result.workflow_id} --reason ...`",
        ]
    if result.branch:
        lines.append(f"{'Quarantined as' if result.outcome else 'Branch'} `{result.branch}`")
    lines.append(f"<{link}|{result.workflow_id}>")
    return [
        {"type": "header", "text": {"type": "plain_text", "text": headline(notification)[:150], "emoji": True}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:_TEXT_LIMIT]}},
    ]


def _reason(result: RunResult) -> str:
    escaped = result.reason.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped[:1500]


def _tables(result: RunResult) -> list[str]:
    return [f"*{name}*: {describe_change(change)}" for name, change in result.tables.items()]


def _audit(result: RunResult) -> str:
    return f"Audit: {count_verdicts(result.checks)}" if result.checks else ""
