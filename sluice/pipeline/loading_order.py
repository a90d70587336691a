"""Keep the order of loads where it matters: schedules, landing zones, and partitions that are dates."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sluice.command_line import OVER_YOUNGER
from sluice.errors import InvalidPipeline
from sluice.pipeline.arrival import Arrival
from sluice.pipeline.loading_rules import kind_of, name_of, rule_of, why_in_order
from sluice.pipeline.placeholders import partition_values
from sluice.pipeline.schedule import Schedule
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.sizes import format_list
from sluice.times import parse_moment

_NAMED = 3


def start_problem(write: Write, tables: Mapping[str, Table], schedule: Schedule | None, arrival: Arrival | None) -> str:
    """Return the reason why a pipeline cannot start as it states, or "" if it can."""
    if not write.traits.is_for_pipelines:  # a command of Sluice derived it from a pipeline that was checked
        return ""
    problems = (
        _schedule_problem(write, tables) if schedule and schedule.overlap == "allow_all" else "",
        _arrival_problem(write, tables, arrival) if arrival else "",
    )
    return next(filter(None, problems), "")


def partition_problem(write: Write, tables: Mapping[str, Table]) -> str:
    """Return the reason why a write that replaces partitions would replace the whole table, or "" if it would not.

    The partitions are those that the pipeline states, not those of the table on main.
    """
    whole = [name for name, table in tables.items() if not table.partition_by]
    if not write.built_in or not write.traits.replaces_partitions or not whole:
        return ""
    return unpartitioned(whole[0], f"the pipeline gives {whole[0]} no partitions")


def unpartitioned(table: str, why: str) -> str:
    """Return the message that a write which replaces partitions would replace a whole table."""
    return (
        f"`mode: overwrite_partitions` would replace all rows of {table}: {why}. State its `partition_by`, or write "
        "`mode: overwrite` if all rows are to be replaced"
    )


def _schedule_problem(write: Write, tables: Collection[str]) -> str:
    if rule_of("schedule", write, tables).order == "any":
        return ""
    return (
        f"schedule: overlap: allow_all: {why_in_order(kind_of(write))}, and a run may overtake the one before it: use "
        "skip, buffer_one, buffer_all or cancel_other"
    )


def _arrival_problem(write: Write, tables: Collection[str], arrival: Arrival) -> str:
    rule = rule_of("arrival", write, tables)
    if rule.refused:
        return f"arrival: {rule.refused}"
    if rule.order == "any":
        return ""
    why = why_in_order(kind_of(write))
    if arrival.at_once > 1:
        return (
            f"arrival: at_once: {why}, and batches that load at the same time may overtake each other: leave at_once "
            "out"
        )
    if arrival.on_failure == "continue":
        return (
            f"arrival: on_failure cannot be `continue`: {why}, and a batch that was kept out would be loaded after "
            "younger ones. Write `pause`, or leave `on_failure` out"
        )
    return ""


def with_order_of_arrival(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return a pipeline as written, with `on_failure: pause` in its arrival if the order of loads matters.

    A pipeline that states `on_failure` itself stays as it is.
    """
    arrival, write = pipeline.get("arrival"), pipeline.get("write")
    if not isinstance(arrival, dict) or not isinstance(write, dict) or "on_failure" in arrival:
        return pipeline
    try:
        stated = Write.model_validate({"source": {"path": "arrival"}, **write})
    except ValueError:
        return pipeline  # its own error says why
    tables = pipeline.get("tables")
    names = [str(name) for name in tables] if isinstance(tables, dict | list) else []
    if rule_of("arrival", stated, names).order == "any":
        return pipeline
    return {**pipeline, "arrival": {**arrival, "on_failure": "pause"}}


def in_order(write: Write, tables: Collection[str]) -> bool:
    """Return True if the partitions of a backfill run one at a time, in their order."""
    return rule_of("backfill each", write, tables).order == "one at a time"


def window_problem(write: Write) -> str:
    """Return the reason why no two partitions of a backfill run at the same time."""
    return f"{why_in_order(kind_of(write))}: its partitions run one at a time, in their order"


def partition_of(values: Mapping[str, str]) -> str:
    """Return the partition that a run loads, or its scheduled time, from the values of its placeholders."""
    return values.get("partition") or values.get("scheduled_for", "")


def is_scheduled_time(partition: str) -> bool:
    """Return True if a load is named by a scheduled time, which has an offset. Others are partitions, also hours."""
    return parse_moment(partition) is not None


def is_later(one: str, other: str) -> bool:
    """Return True if a partition, or a scheduled time, comes after the end of another one.

    Only dates and times are compared; a name is never later. Two times are compared as moments. A time is compared with
    a date by its own date, regardless of its offset.
    """
    moment, other_moment = parse_moment(one), parse_moment(other)
    if moment and other_moment:
        return moment > other_moment
    span, other_span = _span(one), _span(other)
    if span is None or other_span is None:
        return False
    return span[0] >= other_span[1] and span[0] > other_span[0]


def _span(partition: str) -> tuple[datetime, datetime] | None:
    """Return the beginning and the end of a partition, or None if it is a name.

    A range has those of its last partition. A scheduled time ends when it begins.
    """
    last = partition.rsplit("..", maxsplit=1)[-1]
    try:
        values = partition_values(last)
        if "partition.end" in values:
            begin, end = (datetime.fromisoformat(values[f"partition.{each}"]) for each in ("start", "end"))
            return begin, end
        time = datetime.fromisoformat(last).replace(tzinfo=None)
        return (time, time) if "T" in last else None  # some versions of Python also read 20260302
    except (InvalidPipeline, ValueError):
        return None


def out_of_order(partitions: Sequence[str]) -> tuple[str, str] | None:
    """Return the first partition that is older than an earlier one in the list, and that earlier one; else None."""
    latest = ""
    for partition in partitions:
        if latest and is_later(latest, partition):
            return partition, latest
        if not latest or is_later(partition, latest):
            latest = partition
    return None


def latest_of(partitions: Iterable[str], than: str) -> str:
    """Return the latest of the partitions that come after another one, or "" if none does."""
    latest = ""
    for partition in partitions:
        if is_later(partition, than) and (not latest or is_later(partition, latest)):
            latest = partition
    return latest


def is_within(partition: str, others: Collection[str]) -> bool:
    """Return True if a partition is one of others, or lies in one that a joint publish named, such as `2018..2020`."""
    if partition in others or _span(partition) is None:
        return partition in others
    ranges = [other for other in others if ".." in other]
    return any(not is_later(each.partition("..")[0], partition) and not is_later(partition, each) for each in ranges)


def older_partition(write_name: str, older: str, younger: str) -> str:
    """Return the message that an older partition would be loaded after a younger one.

    Args:
        write_name: the kind of write, as messages name it.
        younger: the younger partition, with its location.
    """
    return (
        f"{older} is older than {younger}: with {write_name}, rows of a later load replace rows of an earlier one, so "
        f"older rows would replace younger ones. To load it anyway, add {OVER_YOUNGER}"
    )


def partition_after_later(write: Write, older: str, younger: str) -> str:
    """Return the message that an older partition of a pipeline would be loaded after a younger one."""
    return older_partition(name_of(kind_of(write)), older, younger)


def rows_before_later(table: str, later: Sequence[str]) -> str:
    """Return the message that quarantined rows are older than the rows of later runs.

    Args:
        later: the workflow ids of these runs, the newest first.
    """
    return (
        f"{format_list(later, _NAMED)} changed {table} after these rows were quarantined, and requeued rows "
        "would replace younger ones with the same keys. Requeue the rows of one run by --run, or let the "
        f"older rows win by {OVER_YOUNGER}"
    )


def replaces_other(table: str, partition: str, others: Collection[str]) -> str:
    """Return the message that a run of one partition would remove rows of others.

    Args:
        partition: the partition of the run.
        others: the partitions whose rows it would remove.
    """
    return (
        f"the rows of {partition} would replace those of {format_list(sorted(others), _NAMED)}: "
        f"{table} keeps both in one partition, and `mode: overwrite_partitions` replaces all of it. Give the table "
        "partitions that are not larger than those of the pipeline, keep rows of other partitions out of the files, or "
        "use `mode: merge`"
    )


def replaces_later_time(table: str, time: str, later: str) -> str:
    """Return the message that a run of one scheduled time would remove rows of a later one."""
    return (
        f"the rows of {time} would replace those of {later} in {table}: let them replace younger rows by "
        f"{OVER_YOUNGER}, or keep rows of other times out of the files"
    )


def layout_problem(table: str, partitions: int, other_specs: Collection[int]) -> str:
    """Return the reason why partitions of a table on main cannot be replaced one by one, or "" if they can.

    Args:
        partitions: the number of the table's partition fields.
        other_specs: the partition specs of its live data files, other than its current one.
    """
    if not partitions:
        return unpartitioned(table, "the table has no partitions")
    if other_specs:
        return (
            f"`mode: overwrite_partitions` would keep old rows of {table} next to the new ones: the table has files "
            "from before its partitioning was changed. Rewrite them by a pipeline with `mode: compact` and "
            '`options: {rewrite-all: "true"}`, and start again'
        )
    return ""
