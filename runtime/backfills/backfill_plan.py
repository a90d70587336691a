"""The plan of a backfill: its pipeline for each partition, and the files of each. Needs no server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

from lakehouse.source_files import count_files, find_files, preview_types
from runtime.pipeline.pipeline_input import resolve_paths
from sluice.contracts.guessed_types import TypePreview
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.file import parse_pipeline, read_pipeline_text
from sluice.pipeline.model import Pipeline
from sluice.pipeline.placeholders import differing_placeholders, partition_values, values_of_all
from sluice.pipeline.scope import LoadScope, load_scope, overlapping, placeholders_of_loads


@dataclass(frozen=True)
class PlannedPartition:
    """The files that a partition would load now."""

    partition: str
    files: int | None = None
    """Number of files; None if the pipeline has no source, or it cannot be listed."""
    bytes: int = 0
    problem: str = ""
    paths: list[str] = field(default_factory=list)
    """Paths of the source of this partition."""


def preview_partition(stated: PipelineText, partition: str) -> tuple[Pipeline, TypePreview]:
    """Return the pipeline of a partition, and the column types guessed from the first rows of its files."""
    pipeline = pipeline_of(stated, partition)
    source = pipeline.write.source
    return pipeline, preview_types(source, find_files(source)) if source and pipeline.write.built_in else TypePreview()


def read_backfill_pipeline(file: Path, folder: Path) -> PipelineText:
    """Read the pipeline file of a backfill.

    Raises:
        InvalidPipeline: the file cannot be read.
    """
    return PipelineText(name=str(file), text=read_pipeline_text(file), folder=str(folder))


def pipeline_of(stated: PipelineText, partition: str) -> Pipeline:
    """Return the pipeline of one partition.

    Raises:
        InvalidPipeline: the pipeline is not valid for it.
    """
    pipeline = parse_pipeline(stated.text, stated.name, partition_values(partition))
    return resolve_paths(pipeline, Path(stated.folder))


def check_partitions(stated: PipelineText, partitions: Sequence[str]) -> Pipeline:
    """Validate the pipeline of the first and the last partition; return that of the first.

    Raises:
        InvalidPipeline: one is not valid, or two partitions would write the same rows.
    """
    first = pipeline_of(stated, partitions[0])
    if len(partitions) > 1:
        pipeline_of(stated, partitions[-1])
    tree = YAML(typ="safe").load(stated.text)
    used = sorted(placeholders_of_loads(tree))
    if not used:
        raise InvalidPipeline(
            f"{stated.name} is the same for each partition: write {{{{ partition }}}} into the path of its source, or "
            "into another key that decides what it loads"
        )
    if pair := overlapping(scopes_of(stated, partitions)):
        raise InvalidPipeline(
            f"{stated.name} writes rows of {pair[1]} for {pair[0]} too, since it does not select them by the path of "
            "its files alone: name only one of the two"
        )
    _check_that_all_differ(stated, partitions, used)
    return first


def scopes_of(stated: PipelineText, partitions: Sequence[str]) -> dict[str, LoadScope]:
    """Return the scope of the load of each partition."""
    tree = YAML(typ="safe").load(stated.text)
    return {partition: load_scope(tree, partition_values(partition)) for partition in partitions}


def _check_that_all_differ(stated: PipelineText, partitions: Sequence[str], used: Sequence[str]) -> None:
    """Check that no two partitions write the same rows.

    Args:
        stated: the pipeline file.
        partitions: the partitions.
        used: the placeholders that decide what is written.

    Raises:
        InvalidPipeline: two have the same values of these placeholders.
    """
    seen: dict[tuple[str, ...], str] = {}
    for partition in partitions:
        values = partition_values(partition)
        other = seen.setdefault(tuple(values.get(name, "") for name in used), partition)
        if other != partition:
            names = ", ".join(f"{{{{ {name} }}}}" for name in used)
            raise InvalidPipeline(
                f"{stated.name} writes the same for {other} and {partition}, since it uses only {names} of a "
                "partition: use {{ partition }} instead, or name only one of the two"
            )


def check_together(stated: PipelineText, partitions: Sequence[str]) -> None:
    """Validate the pipeline for all partitions together, which a joint publish audits before it merges.

    Raises:
        InvalidPipeline: it is not valid, or the partitions differ in more than the path that they are loaded from.
    """
    values = values_of_all(partitions)
    resolve_paths(parse_pipeline(stated.text, stated.name, values), Path(stated.folder))
    check_same_for_all(stated, values)


def check_same_for_all(stated: PipelineText, values: Mapping[str, str]) -> None:
    """Check that a pipeline is the same for all partitions, except for the path that they are loaded from.

    Args:
        values: values of the placeholders for all partitions together.

    Raises:
        InvalidPipeline: the pipeline differs: a check would be about the partition `*`, which has no rows.
    """
    if names := sorted(differing_placeholders(YAML(typ="safe").load(stated.text), values)):
        raise InvalidPipeline(
            f"{stated.name}: {', '.join(f'{{{{ {name} }}}}' for name in names)} would be `*` when all partitions are "
            "audited together: outside of the source's path write {{ partition.start }} and {{ partition.end }}, or "
            "leave out `--publish together`"
        )


def plan_partition(stated: PipelineText, partition: str) -> PlannedPartition:
    """Return the files that a partition would load now. Problems become part of the plan."""
    try:
        source = pipeline_of(stated, partition).write.source
        if source is None:
            return PlannedPartition(partition)
        files, size = count_files(source)
    except (InvalidPipeline, InvalidInput) as error:
        return PlannedPartition(partition, problem=str(error))
    problem = "" if files else f"there are no files at {source.paths[0]!r}"
    return PlannedPartition(partition, files, size, problem, source.paths)
