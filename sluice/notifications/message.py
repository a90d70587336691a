"""A message to people about a run, a landing zone, a schedule or a registration."""

from typing import Literal, get_args

from pydantic import Field

from sluice.base_model import StrictModel
from sluice.command_line import COMMAND
from sluice.contracts.arrivals import ZoneNotice
from sluice.contracts.registration import FailedRegistration
from sluice.contracts.run import Notification, Outcome, RunResult
from sluice.contracts.schedules import ScheduleNotice
from sluice.presentation.changes import describe_change, describe_message, describe_summary, summary_heading
from sluice.presentation.schedules import describe_ended, describe_missed
from sluice.presentation.waivers import count_audit, how_to_waive
from sluice.times import format_time

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the mildest to the most severe."""
EVENTS = ("waiting", *get_args(Outcome), "arrivals", "schedule", "registration")
"""Outcomes of runs, a run that waits for approval, and notices of what starts or follows runs."""
_SEVERITY: dict[str, Severity] = {
    "quarantined": "error",
    "discarded": "error",
    "failed": "error",
    "registration": "error",
    "waiting": "warning",
    "arrivals": "warning",
    "schedule": "warning",
}
_LONGEST_TITLE = 2000
"""Maximum number of characters of a notice."""
_LONGEST_MESSAGE = 340
"""Maximum number of characters of the message of a merge commit."""


class Message(StrictModel):
    """A message without the markup of any service. A command or a name of a branch stands in backquotes."""

    event: str
    """One of `EVENTS`."""
    severity: Severity
    pipeline: str
    """Empty for the registration of a table, because several pipelines may write it: routes match it by its table."""
    tables: list[str] = Field(default_factory=list)
    """Tables that it is about: those that a run changed, or else those of its pipeline."""
    title: str
    """One line."""
    lines: list[str] = Field(default_factory=list)
    """Further lines."""
    link: str = ""
    """Address of the run on the page, or in the Temporal Web UI if there is no page."""
    run: Notification | None = None
    """The run that ended or waits for approval, for services that lay it out themselves."""

    @property
    def content(self) -> str:
        """Text by which a route recognises a repetition: the title, and the reason of a run."""
        return f"{self.title}\0{self.run.result.reason if self.run else ''}"


def message_of_run(notification: Notification, link: str) -> Message:
    """Return the message about a run that ended or waits for approval."""
    result = notification.result
    event = "waiting" if notification.waiting_until else str(result.outcome)
    severity = _SEVERITY.get(event, "info")
    return Message(
        event=event,
        severity="warning" if result.waived and severity == "info" else severity,
        pipeline=result.pipeline,
        tables=sorted(result.tables or notification.tables),
        title=_title(notification),
        lines=[line for line in _lines(notification) if line],
        link=link,
        run=notification,
    )


def message_of_landing_zone(notice: ZoneNotice) -> Message:
    """Return the message about a landing zone."""
    return _notice("arrivals", notice.name, f"arrivals of {notice.name}: {notice.text}")


def message_of_schedule(notice: ScheduleNotice) -> Message:
    """Return the message about a schedule."""
    missed = describe_missed(notice.missed)
    parts = [f"starts that did not happen: {missed}"] if missed else []
    parts += [describe_ended(notice.ended)] if notice.ended else []
    parts += [f"it is paused until `resume {notice.pipeline}`"] if notice.paused else []
    return _notice("schedule", notice.pipeline, f"schedule of {notice.pipeline}: {'; '.join(parts)}")


def message_of_registration(failed: FailedRegistration) -> Message:
    """Return the message about a registration that failed."""
    registration = failed.registration
    what = registration.table or f"a publication of {failed.pipeline}"
    title = f"registration of {what} at {registration.target} failed: {registration.reason}"
    return _notice("registration", failed.pipeline, title, failed.tables)


def _notice(event: str, pipeline: str, title: str, tables: list[str] | None = None) -> Message:
    line = " ".join(title.split())[:_LONGEST_TITLE]
    return Message(event=event, severity=_SEVERITY[event], pipeline=pipeline, title=line, tables=tables or [])


def _title(notification: Notification) -> str:
    result = notification.result
    if notification.waiting_until:
        what = "waits for a waiver: its audit failed" if how_to_waive(result) else "waits for approval"
        return f"{result.pipeline} {what}"
    waived = f", {len(result.waived)} failed check{'s' * (len(result.waived) != 1)} WAIVED" if result.waived else ""
    return f"{result.pipeline}: {result.outcome}{waived}"


def _lines(notification: Notification) -> list[str]:
    result = notification.result
    totals, message = describe_summary(result), describe_message(result)[:_LONGEST_MESSAGE]
    lines = [
        result.reason[:1500],
        f"{summary_heading(result).capitalize()}: {totals}" if totals else "",
        f"Message: {message}" if message else "",
        *(f"{name}: {describe_change(change)}" for name, change in result.tables.items()),
        f"Audit: {count_audit(result)}" if result.checks else "",
        *(_how_to_decide(notification, result) if notification.waiting_until else ()),
    ]
    return [*lines, f"{'Quarantined as' if result.outcome else 'Branch'} `{result.branch}`" if result.branch else ""]


def _how_to_decide(notification: Notification, result: RunResult) -> list[str]:
    return [
        f"Without enough approvals by {format_time(notification.waiting_until)} it is not published.",
        f"`{how_to_waive(result) or f'{COMMAND} approve {result.workflow_id}'}`",
        f"`{COMMAND} reject {result.workflow_id} --reason ...`",
    ]
