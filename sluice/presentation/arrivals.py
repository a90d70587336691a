"""Texts about landing zones, for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from sluice.contracts.arrivals import (
    ROLLED_BACK,
    ArrivalEntry,
    Batch,
    ListArrivalsResult,
    ZoneStatus,
    other_content_in,
)
from sluice.lines import shortened_line
from sluice.sizes import format_count
from sluice.times import format_time

_SHORT = 160
"""Maximum number of characters of a batch's reason next to each of its files. The whole reason is shown above them."""


def describe_batch(batch: Batch) -> str:
    """Describe a batch in a few words."""
    files = format_count(batch.ref.files, "file")
    run = f" (run {batch.workflow_id})" if batch.workflow_id else ""
    return f"{files} {batch.state}{run}"


def describe_files(listed: ListArrivalsResult | ZoneStatus, batches: Sequence[Batch]) -> str:
    """Return the number of files of a zone by status: of files in a batch, by the state that the list shows."""
    counts = Counter(listed.counts)
    if counts["in a batch"] == sum(listed.in_batches.values()):  # otherwise a worker of an earlier release counted
        del counts["in a batch"]
        for detail, number in listed.in_batches.items():
            counts[_state_in_batch(detail, batches)] += number
    return _describe_counts(counts)


def describe_listing(listed: ListArrivalsResult, batches: Sequence[Batch], status: str | None) -> str:
    """Return the number of all files of a zone: by status if no file has the wanted status, else by state."""
    if not (total := sum(listed.counts.values())):
        return "No files."
    has_none = status and not listed.files
    counts = _describe_counts(listed.counts) if has_none else describe_files(listed, batches)
    return f"{format_count(total, 'file')}: {counts}"


def describe_no_match(file: str, status: str | None) -> str:
    """Return the reason why no file is listed.

    Args:
        file: the wanted part of the path; empty for any.
        status: the wanted status; None for any.
    """
    which = f"No file with {file!r} in its path" if file else "No file"
    if status:
        also = " The status of files in a batch is 'in a batch'." if status == "waiting" else ""
        return f"{which} has the status {status!r}.{also}"
    return f"{which} is in the landing zone. Names that begin with _ or . are not listed."


def _describe_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in sorted(counts.items())) or "none"


def describe_batches(batches: Sequence[Batch]) -> str:
    """Describe the batches of a landing zone by state: their number and their files, or the run of a single batch."""
    by_state: dict[str, list[Batch]] = {}
    for batch in batches:
        by_state.setdefault(batch.state, []).append(batch)
    return ", ".join(_describe_state(state, each) for state, each in by_state.items()) or "none"


def _describe_state(state: str, batches: Sequence[Batch]) -> str:
    files = format_count(sum(each.ref.files for each in batches), "file")
    run = f", run {batches[0].workflow_id}" if len(batches) == 1 and batches[0].workflow_id else ""
    return f"{len(batches):,} batch{'es' * (len(batches) > 1)} {state} ({files}{run})"


def describe_file(file: ArrivalEntry, zone: ZoneStatus, runs: Mapping[str, str]) -> tuple[str, str]:
    """Return the state of a file, and the reason for it.

    Args:
        runs: by the id of a batch, the workflow id of its run.
    """
    after = f"; {file.after}" if file.after else ""
    if file.status == "loaded":
        state, why = _describe_loaded(file, zone)
        return state, why + after
    if file.status != "in a batch":
        return file.status, file.detail + after
    return _state_in_batch(file.detail, zone.batches), _why_in_batch(file, zone, runs)


def _state_in_batch(detail: str, batches: Sequence[Batch]) -> str:
    """Return the state of a file in a batch. It waits if the batch has its path with other content, or is not known.

    Args:
        detail: the detail of its status.
    """
    return next((each.state for each in batches if each.ref.id == detail), "waiting")


def _why_in_batch(file: ArrivalEntry, zone: ZoneStatus, runs: Mapping[str, str]) -> str:
    for batch in zone.batches:
        if file.detail == batch.ref.id:
            return f"batch {file.detail}{_why(batch, zone, runs)}"
        if file.detail == other_content_in(batch.ref.id):
            return f"{file.detail}{_why_behind(batch, zone)}"
    return f"batch {file.detail} has just begun, or ended"


def _describe_loaded(file: ArrivalEntry, zone: ZoneStatus) -> tuple[str, str]:
    if file.detail.endswith(ROLLED_BACK):
        again = f"only `arrivals {zone.name} --load FILE` loads it again"
        return "rolled back", f"run {file.detail.removesuffix(ROLLED_BACK)}; {again}"
    if file.copy_of:
        return "copy", f"of {file.copy_of}, which run {file.detail} loaded"
    return "published", f"run {file.detail}"


def format_arrival(timestamp: float | None) -> str:
    """Format the time at which a file arrived, in seconds since 1970. Return "never" if there is none."""
    return "never" if timestamp is None else format_time(datetime.fromtimestamp(timestamp, timezone.utc).isoformat())


def _why_behind(batch: Batch, zone: ZoneStatus) -> str:
    """Describe the wait of a file whose path is in a batch with other content."""
    if batch.state != "kept out":
        return f", and is {batch.state}: the zone decides about the file when that batch has ended"
    retry, set_aside = (f"`arrivals {zone.name} --{each} {batch.ref.id}`" for each in ("retry", "set-aside"))
    return (
        f", and is kept out: {retry} loads the files as they are now, {set_aside} loads this content without that batch"
    )


def _why(batch: Batch, zone: ZoneStatus, runs: Mapping[str, str]) -> str:
    """Describe the present situation of a batch, as a continuation of its name."""
    if batch.state == "running":
        return f": run {runs.get(batch.ref.id, batch.workflow_id)}"
    if batch.state == "waiting":
        return ": the landing zone is paused" if zone.paused else ": older batches are loaded first"
    return f": {shortened_line(batch.reason, _SHORT)}" if batch.reason else ""
