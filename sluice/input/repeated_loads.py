"""Hint about schedules that load the same files again at each start."""

from sluice.pipeline.model import Pipeline


def hints_on_repeated_loads(pipeline: Pipeline) -> list[str]:
    """Return a hint if each scheduled time loads all files of the source again, as another load of them."""
    write = pipeline.write
    if write.source is None or write.loaded_files == "reload" or not (pipeline.schedule and pipeline.scope.content):
        return []
    return [
        "each scheduled time loads all files of the source again, since {{ scheduled_for }} stands outside of "
        "`write.source.path`; to load each file once, keep it in the path"
    ]
