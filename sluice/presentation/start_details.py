"""Details of landing zones and backfills as markdown, for the Temporal Web UI."""

from collections.abc import Sequence

from sluice.backfills.progress import count_states
from sluice.contracts.arrivals import Batch, ZoneStatus
from sluice.contracts.backfill import BackfillState, JointPublish
from sluice.presentation.arrivals import describe_batches, describe_files
from sluice.presentation.markdown import cell

_MOST = 10
"""Maximum number of rows of a table. Details are short, because the Web UI passes them in an address."""


def zone_details(zone: ZoneStatus) -> str:
    """Describe a landing zone: open or paused, the number of its files and batches, and batches that need a person."""
    state = f"**paused**: {cell(zone.paused)}" if zone.paused else "**open**"
    state += f", resumed: {cell(zone.resumed)}" if zone.resumed else ""
    lines = [
        state,
        "",
        f"Files: {describe_files(zone, zone.batches)}",
        "",
        f"Batches: {describe_batches(zone.batches)}",
    ]
    if zone.problem:
        lines += ["", f"Problem: {cell(zone.problem)}"]
    if zone.unfinished:
        lines += ["", f"After the load: {cell(zone.unfinished)}"]
    kept_out = [batch for batch in zone.batches if batch.state == "kept out"]
    if kept_out:
        lines += ["", "| batch kept out | files | reason |", "|---|---:|---|", *_batch_rows(kept_out)]
        lines += ["", f"`arrivals {zone.name}` lists the files, and says how to decide about a batch."]
    return "\n".join(lines)


def backfill_details(state: BackfillState, together: JointPublish | None) -> str:
    """Describe a backfill: its partitions by state, a pause, and the latest partitions that failed, with reasons."""
    states = count_states(state)
    counts = ", ".join(f"{number:,} {name}" for name, number in states.items())
    is_over = not (states["waiting"] or states["running"]) and (together is None or together.ended)
    lines = [f"**paused**: {cell(state.paused)}" if state.paused else "**ended**" if is_over else "**under way**"]
    lines += ["", f"{len(state.partitions):,} partitions: {counts}", "", f"{state.window} at a time"]
    if together:
        lines += ["", f"Published by one merge, from `{together.branch or 'a branch that is not created yet'}`"]
        if together.ended:
            lines += ["", f"**{together.ended.outcome}** {cell(together.ended.reason)}"]
    if state.notes:
        latest = list(state.notes.items())[-_MOST:]
        lines += ["", "| partition | outcome | reason |", "|---|---|---|"]
        lines += [f"| {cell(name)} | {note.outcome} | {cell(note.reason)} |" for name, note in latest]
    return "\n".join(lines)


def _batch_rows(batches: Sequence[Batch]) -> list[str]:
    rows = [f"| `{batch.ref.id}` | {batch.ref.files:,} | {cell(batch.reason)} |" for batch in batches[:_MOST]]
    return rows + ([f"| {len(batches) - _MOST:,} more | | |"] if len(batches) > _MOST else [])
