"""The layout of messages on Slack."""

from typing import Any

from sluice.contracts.run import RunResult
from sluice.lines import shortened_line
from sluice.notifications.message import Message
from sluice.notifications.slack_buttons import decision_buttons
from sluice.presentation.waivers import WAIVED, waiting_lines, waiver_lines

_ICONS = {
    "waiting": ":raised_hand:",
    "published": ":white_check_mark:",
    "checked": ":mag:",
    "skipped": ":fast_forward:",
    "quarantined": ":no_entry:",
    "discarded": ":wastebasket:",
    "cancelled": ":black_square_for_stop:",
    "failed": ":rotating_light:",
}
_TEXT_LIMIT = 2900
"""Maximum number of characters of a section. Slack refuses one with more than 3000."""
_MAX_LINES, _LINE_LIMIT = 8, 340
"""Maximum number of waivers in a message, and of characters of each: together they fit into a section."""


def slack_text(message: Message) -> str:
    """Return the message in one line: for the notification of a device, or the whole message if it has no blocks."""
    return f"{_ICONS.get(message.event, ':warning:')} {escaped(message.title)}"


def slack_blocks(message: Message, report: str = "") -> list[dict[str, Any]]:
    """Return the message as Slack's blocks; none for a notice of one line.

    Args:
        report: name of the report that people decide about by buttons; empty means no buttons.
    """
    if message.run is None:
        return []
    result = message.run.result
    lines = [*map(escaped, message.lines), f"<{message.link}|{result.workflow_id}>"]
    title = f"{_ICONS.get(message.event, '')} {message.title}".strip()
    return [
        {"type": "header", "text": {"type": "plain_text", "text": title[:150], "emoji": True}},
        *_waivers(result, waiting=bool(message.run.waiting_until)),
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:_TEXT_LIMIT]}},
        *decision_buttons(message.run, report),
    ]


def _waivers(result: RunResult, *, waiting: bool) -> list[dict[str, Any]]:
    """Return a section about waivers in plain text: a reason may contain any markup, and must mention nobody."""
    waived = [f":warning: {WAIVED} {shortened_line(line, _LINE_LIMIT)}" for line in waiver_lines(result)]
    lines = [*waived, *(f":question: {shortened_line(line, _LINE_LIMIT)}" for line in waiting_lines(result) if waiting)]
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"and {len(lines) - _MAX_LINES} more"]
    if not lines:
        return []
    return [{"type": "section", "text": {"type": "plain_text", "text": "\n".join(lines), "emoji": True}}]


def escaped(text: str) -> str:
    """Return a text without markup of Slack, so that it mentions nobody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
