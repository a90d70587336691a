"""What people are told on Slack: one message for each ending, and one for a run that waits for them."""

from typing import Any

from sluice.audit.verdicts import count_verdicts
from sluice.contracts.run import Notification, RunResult

_ICONS = {
    "published": ":white_check_mark:",
    "quarantined": ":no_entry:",
    "discarded": ":wastebasket:",
    "cancelled": ":black_square_for_stop:",
    "failed": ":rotating_light:",
}
_TEXT_LIMIT = 2900
"""Slack refuses a section with more than 3000 characters."""


def headline(notice: Notification) -> str:
    """Return the message in one line, as a notification shows it."""
    result = notice.result
    if notice.waiting_until:
        return f":raised_hand: {result.pipeline} waits for approval"
    return f"{_ICONS.get(result.outcome or '', '')} {result.pipeline}: {result.outcome}".strip()


def blocks(notice: Notification, link: str) -> list[dict[str, Any]]:
    """Return the message as Slack's blocks; `link` leads to the run in the Temporal Web UI."""
    result = notice.result
    lines = [line for line in (_reason(result), *_tables(result), _audit(result)) if line]
    if notice.waiting_until:
        lines += [
            f"Until {notice.waiting_until}; no answer means no.",
            f"`python run_workflow.py approve {result.workflow_id}`",
            f"`python run_workflow.py reject {result.workflow_id} --reason ...`",
        ]
    if result.branch:
        lines.append(f"Branch `{result.branch}`")
    lines.append(f"<{link}|{result.workflow_id}>")
    return [
        {"type": "header", "text": {"type": "plain_text", "text": headline(notice)[:150], "emoji": True}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:_TEXT_LIMIT]}},
    ]


def _reason(result: RunResult) -> str:
    escaped = result.reason.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped[:1500]


def _tables(result: RunResult) -> list[str]:
    return [
        f"*{name}*: {change.added_rows:,} rows added, {change.deleted_rows:,} removed"
        for name, change in result.tables.items()
    ]


def _audit(result: RunResult) -> str:
    return f"Audit: {count_verdicts(result.checks)}" if result.checks else ""
