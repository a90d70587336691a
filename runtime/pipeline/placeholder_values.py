"""Placeholder values that a person gives to one run."""

from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from sluice.contracts.load_order import LoadOrder
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import read_pipeline
from sluice.pipeline.loading_order import partition_of
from sluice.pipeline.placeholders import partition_values, time_values
from sluice.pipeline.schedule import Schedule
from sluice.times import parse_time


def placeholder_values(file: Path | None, scheduled_for: str, partition: str) -> dict[str, str]:
    """Return the values of a file's placeholders, as a schedule or backfill gives them.

    Args:
        scheduled_for: a time in ISO 8601, in the zone of the file's schedule if it has no offset; empty for none.
        partition: the partition; empty for none.

    Raises:
        InvalidPipeline: the values are not valid, or there is no file that could have placeholders.
    """
    if not scheduled_for and not partition:
        return {}
    if file is None:
        raise InvalidPipeline("--scheduled-for and --partition are for pipeline files: name one")
    values = partition_values(partition) if partition else {}
    if not scheduled_for:
        return values
    try:
        time = parse_time(scheduled_for)
    except ValueError as error:
        raise InvalidPipeline(f"{scheduled_for!r} is not a time: write it as 2026-03-01T05:00+01:00") from error
    return values | time_values(_in_zone(time, read_pipeline(file, values | time_values(time)).schedule, scheduled_for))


def order_of(file: Path | None, scheduled_for: str, partition: str, *, over_younger: bool = False) -> LoadOrder:
    """Return the load order of one run, according to the values that a person gives it.

    Raises:
        InvalidPipeline: the values are not valid.
    """
    values = placeholder_values(file, scheduled_for, partition)
    return LoadOrder(partition=partition_of(values), over_younger=over_younger)


def _in_zone(time: datetime, schedule: Schedule | None, given: str) -> datetime:
    """Return a time in the zone of a schedule, if there is one, so that its parts equal those of a scheduled start."""
    if schedule is None and time.tzinfo is None:
        raise InvalidPipeline(
            f"{given!r} has no time zone, and neither has a `schedule` of the pipeline: add an offset, such as +01:00"
        )
    if schedule is None:
        return time
    zone = ZoneInfo(schedule.zone)
    moment = time if time.tzinfo else time.replace(tzinfo=zone)
    return moment.astimezone(timezone.utc).astimezone(zone)  # moves a time in the hour that the zone skips
