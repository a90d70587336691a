"""Describe schedules in `check`, in the plan of `deploy`, in lists, and on Slack."""

from sluice.contracts.schedules import MissedStarts
from sluice.contracts.starting import EndedRun
from sluice.durations import format_duration
from sluice.pipeline.schedule import Schedule

PAUSED_BECAUSE = "paused because "
"""Beginning of the note of a schedule that was paused because a run failed."""

_LONGEST = 500


def describe_schedule(schedule: Schedule) -> str:
    """Describe a schedule in one line."""
    parts = [f"{schedule.cron} in {schedule.zone}", f"overlap {schedule.overlap}"]
    parts.append(f"missed starts up to {format_duration(schedule.catch_up)} later")
    parts += ["paused on failure"] if schedule.pause_on else []
    return ", ".join(parts)


def describe_pause(note: str | None) -> str:
    """Return the reason of a pause, from the note of the schedule."""
    return (note or "no note").removeprefix(PAUSED_BECAUSE)


def describe_missed(missed: MissedStarts) -> str:
    """Return the number of starts that did not happen, by reason; empty if there are none."""
    why = {
        "Temporal was unavailable for longer than `catch_up`": missed.late,
        "the previous run had not ended": missed.overlapping,
    }
    return ", ".join(f"{number} because {reason}" for reason, number in why.items() if number)


def describe_ended(ended: EndedRun) -> str:
    """Describe the ending of a scheduled run in one line."""
    what = f"run {ended.workflow_id}" if ended.workflow_id else "its run"
    how = "was not started" if ended.outcome == "refused" else f"ended {ended.outcome}"
    why = " ".join(ended.reason.split())[:_LONGEST]
    return f"{what} {how}" + (f": {why}" if why else "")
