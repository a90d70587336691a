"""Decide if batches of a landing zone may be split."""

from sluice.contracts.arrivals import ZoneStatus
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline


def split_refusal(zone: ZoneStatus) -> str:
    """Return the reason why no batch of a landing zone may be split; empty if batches may be.

    The halves are loaded one after the other. If each load replaces rows, the second half would replace the first.
    """
    try:
        write = parse_pipeline(zone.pipeline.text, zone.pipeline.name).write
    except InvalidPipeline:  # the landing zone reports that itself, and loads nothing
        return ""
    if not write.traits.replaces_rows:
        return ""
    return (
        f"a batch of {zone.name} cannot be split: with `mode: {write.mode}`, the second half would replace rows of the "
        f"first. Correct the file, and load the whole batch by `arrivals {zone.name} --retry BATCH`"
    )
