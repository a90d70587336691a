"""Hints about pipelines that may load the same rows again."""

from sluice.pipeline.model import Pipeline


def hints_on_repeated_loads(pipeline: Pipeline) -> list[str]:
    """Return hints at a schedule that loads all files of its source again, and at files that are loaded twice."""
    write, arrival = pipeline.write, pipeline.arrival
    if write.source is None or write.loaded_files == "reload":
        return []
    if arrival and arrival.overwritten == "load" and not write.traits.order_matters:
        return [
            "with `overwritten: load`, rows that a file had before it was overwritten stay in the table, and are there "
            "twice if the new content has them, too: use `mode: merge` with keys"
        ]
    if not (pipeline.schedule and pipeline.scope.content):
        return []
    return [
        "each scheduled time loads all files of the source again, since {{ scheduled_for }} stands outside of "
        "`write.source.path`; to load each file once, keep it in the path"
    ]
