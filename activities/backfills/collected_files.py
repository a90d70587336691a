"""Compare the files of collected partitions with what their runs read, before all partitions are published."""

from collections.abc import Iterable, Sequence

from lakehouse.source_files import OnProgress
from lakehouse.source_files.identify import check_unchanged
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.run_request import InputFile
from sluice.contracts.starting import PipelineText
from sluice.errors import InputChanged
from sluice.input.manifest import ManifestFile
from sluice.pipeline.placeholders import partition_values


def check_collected_files(
    text: PipelineText, partitions: Iterable[tuple[str, Sequence[ManifestFile]]], on_progress: OnProgress
) -> None:
    """Check that no file was replaced or removed after its partition was written.

    Args:
        text: the pipeline file.
        partitions: the partitions with the files that their runs loaded.

    Raises:
        InputChanged: a file was replaced or removed. The joint publish would bring its old rows to main.
        InvalidInput: a file cannot be read now.
        ServiceUnavailable: an object store does not answer.
    """
    for partition, files in partitions:
        source = pipeline_of_text(text, partition_values(partition)).write.source
        if source is None:
            continue
        read = [InputFile(path=file.path, size=file.size, identity=file.identity) for file in files]
        try:
            check_unchanged(read, source, on_progress)
        except InputChanged as error:
            raise InputChanged(
                f"partition {partition}: {error.change} after the backfill wrote its rows. Nothing was published, and "
                "what was collected is deleted: start the backfill again"
            ) from error
