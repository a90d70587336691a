"""Messages on Slack: one when a run ends, and one when it waits for approval."""

from typing import Any

from sluice.command_line import COMMAND
from sluice.contracts.run import Notification, RunResult
from sluice.presentation.changes import describe_change, describe_message, describe_summary, summary_heading
from sluice.presentation.waivers import WAIVED, count_audit, how_to_waive, waiting_lines, waiver_lines
from sluice.times import format_time

_ICONS = {
    "published": ":white_check_mark:",
    "checked": ":mag:",
    "skipped": ":fast_forward:",
    "quarantined": ":no_entry:",
    "discarded": ":wastebasket:",
    "cancelled": ":black_square_for_stop:",
    "failed": ":rotating_light:",
}
_TEXT_LIMIT = 2900
"""Maximum number of characters of a section. Slack refuses more than 3000."""
_MAX_LINES, _LINE_LIMIT = 8, 340
"""Maximum number of waivers in a message, and of characters of each. All of them together fit into a section."""


def headline(notification: Notification) -> str:
    """Return the message in one line, for a device's notification."""
    result = notification.result
    if notification.waiting_until:
        what = "waits for a waiver: its audit failed" if how_to_waive(result) else "waits for approval"
        return f":raised_hand: {result.pipeline} {what}"
    waived = f", {len(result.waived)} failed check{'s' * (len(result.waived) != 1)} WAIVED" if result.waived else ""
    return f"{_ICONS.get(result.outcome or '', '')} {result.pipeline}: {result.outcome}{waived}".strip()


def blocks(notification: Notification, link: str) -> list[dict[str, Any]]:
    """Return the message as Slack blocks. `link` leads to the run in the Temporal Web UI."""
    result = notification.result
    lines = [line for line in (_reason(result), *_summary(result), *_tables(result), _audit(result)) if line]
    if notification.waiting_until:
        lines += [
            f"Without enough approvals by {format_time(notification.waiting_until)} it is not published.",
            f"`{_escaped(how_to_waive(result)) or f'{COMMAND} approve {result.workflow_id}'}`",
            f"`{COMMAND} reject {result.workflow_id} --reason ...`",
        ]
    if result.branch:
        lines.append(f"{'Quarantined as' if result.outcome else 'Branch'} `{result.branch}`")
    lines.append(f"<{link}|{result.workflow_id}>")
    return [
        {"type": "header", "text": {"type": "plain_text", "text": headline(notification)[:150], "emoji": True}},
        *_waivers(result, waiting=bool(notification.waiting_until)),
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:_TEXT_LIMIT]}},
    ]


def _waivers(result: RunResult, *, waiting: bool) -> list[dict[str, Any]]:
    """Return a separate section about waivers, as plain text: a reason may contain markup, and must mention nobody."""
    waived = [f":warning: {WAIVED} {_short(line)}" for line in waiver_lines(result)]
    lines = [*waived, *(f":question: {_short(line)}" for line in waiting_lines(result) if waiting)]
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"and {len(lines) - _MAX_LINES} more"]
    if not lines:
        return []
    return [{"type": "section", "text": {"type": "plain_text", "text": "\n".join(lines), "emoji": True}}]


def _short(line: str) -> str:
    plain = " ".join(line.split())
    return plain if len(plain) <= _LINE_LIMIT else plain[: _LINE_LIMIT - 1] + "…"


def _reason(result: RunResult) -> str:
    return _escaped(result.reason)[:1500]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _summary(result: RunResult) -> list[str]:
    """Return the totals of the run, and the pipeline's message for the merge commit if there is one."""
    totals, message = describe_summary(result), describe_message(result)[:_LINE_LIMIT]
    return [
        f"{summary_heading(result).capitalize()}: {totals}" if totals else "",
        f"Message: {_escaped(message)}" if message else "",
    ]


def _tables(result: RunResult) -> list[str]:
    return [f"*{name}*: {describe_change(change)}" for name, change in result.tables.items()]


def _audit(result: RunResult) -> str:
    return f"Audit: {count_audit(result)}" if result.checks else ""
