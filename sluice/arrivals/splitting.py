"""Decide if batches of a landing zone may be split."""

from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline


def split_refusal(name: str, pipeline: PipelineText) -> str:
    """Return the reason why no batch of a landing zone may be split; empty if batches may be.

    The halves are loaded one after the other. If each load replaces rows, the second half would replace the first.

    Args:
        name: the name of the pipeline.
        pipeline: the pipeline.
    """
    try:
        write = parse_pipeline(pipeline.text, pipeline.name).write
    except InvalidPipeline:  # the landing zone reports that itself, and loads nothing
        return ""
    if not write.traits.replaces_rows:
        return ""
    return (
        f"a batch of {name} cannot be split: with `mode: {write.mode}`, the second half would replace rows of the "
        f"first. Correct the file, and load the whole batch by `arrivals {name} --retry BATCH`"
    )
