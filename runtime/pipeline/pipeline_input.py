"""The pipeline and the input of a start, read on the machine that starts the run. Needs no server."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from lakehouse.source_files import (
    absolute_path,
    absolute_source,
    check_columns_in,
    find_files,
    hints_on_stated_types,
    identify_input,
    is_remote,
    may_list,
    preview_types,
    problems_of_beginnings,
    read_column_names,
    without_scheme,
)
from sluice.contracts.guessed_types import TypePreview
from sluice.contracts.run_request import InputFile, RunInput
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidInput, InvalidPipeline, NoFiles
from sluice.input.header_hints import hints_on_header
from sluice.input.repeated_loads import hints_on_repeated_loads
from sluice.pipeline.arrival import Arrival
from sluice.pipeline.environment import pipeline_from_environment
from sluice.pipeline.file import locate, parse_pipeline, read_pipeline
from sluice.pipeline.input_columns import (
    check_column_problems,
    check_type_hints,
    columns_of_table,
    layout_column_problems,
    transform_column_problems,
)
from sluice.pipeline.model import Pipeline
from sluice.pipeline.source import Source
from sluice.pipeline.write import Write
from sluice.registration.targets import read_targets
from sluice.settings import read_settings

_NO_VALUES: Mapping[str, str] = {}


@dataclass(frozen=True)
class InspectedInput:
    """Files that a pipeline loads."""

    run_input: RunInput
    columns: list[str] | None = None
    """Names of their columns, if they are known before Spark reads the files."""
    types: TypePreview = field(default_factory=TypePreview)
    """Types guessed from the first rows, for columns that neither the pipeline nor a table types."""
    hints: list[str] = field(default_factory=list)
    """Hints about the files, for a person to read before the run starts."""


def load_pipeline(
    file: Path | None,
    environment: Mapping[str, str],
    working_directory: Path,
    values: Mapping[str, str] = _NO_VALUES,
) -> Pipeline:
    """Read the pipeline of a file, or of the environment; make its paths absolute.

    Args:
        values: values of the placeholders in the file.

    Raises:
        InvalidPipeline: the pipeline is not valid, its job does not exist, or it names targets that do not exist.
        BadEnvironment: the file of targets is not valid.
    """
    pipeline = read_pipeline(file, values) if file else pipeline_from_environment(environment)
    _check_targets(pipeline, file, environment)
    return resolve_paths(pipeline, working_directory)


def pipeline_of_text(stated: PipelineText, values: Mapping[str, str] = MappingProxyType({})) -> Pipeline:
    """Return the pipeline of a file whose text came with a message; make its paths absolute.

    Args:
        values: values of its placeholders.

    Raises:
        InvalidPipeline: the pipeline is not valid, or its job does not exist.
    """
    return resolve_paths(parse_pipeline(stated.text, stated.name, values), Path(stated.folder))


def _check_targets(pipeline: Pipeline, file: Path | None, environment: Mapping[str, str]) -> None:
    """Compare the targets that a pipeline names with those of the installation, if their file is on this machine.

    A worker does so in any case, when it opens the branch of the run.
    """
    if not pipeline.after_publish:
        return
    settings = read_settings(environment)
    targets_file = settings.registration.sluice_targets_file
    if not targets_file or not Path(targets_file).is_file():
        return
    targets = read_targets(targets_file)
    if problems := targets.problems(pipeline.after_publish, list(pipeline.tables), settings.storage.lake):
        located = [(("after_publish",), problem) for problem in problems]
        raise InvalidPipeline("\n".join(locate(file, located) if file else problems))


def resolve_paths(pipeline: Pipeline, working_directory: Path) -> Pipeline:
    """Return a pipeline whose local paths are absolute, since a worker may run in another folder.

    Raises:
        InvalidPipeline: its job does not exist, or it would move loaded files into the landing zone again.
    """
    write, arrival = pipeline.write, pipeline.arrival and resolve_arrival(pipeline.arrival, working_directory)
    if write.source:
        write = write.model_copy(update={"source": absolute_source(write.source, working_directory)})
    if not write.built_in:
        job = absolute_path(write.job, working_directory)
        if not job.is_file():
            raise InvalidPipeline(
                f"the job {write.job[:200]!r} does not exist (looked for {str(job)[:200]}); the built-in one is "
                "`ingest`"
            )
        write = write.model_copy(update={"job": str(job)})
    return pipeline.model_copy(update={"write": write, "arrival": arrival})


def resolve_arrival(arrival: Arrival, working_directory: Path) -> Arrival:
    """Return an arrival with absolute local paths.

    Raises:
        InvalidPipeline: it would move loaded files to a place where the landing zone lists them again.
    """
    paths = {"from_": arrival.from_} | ({"move_to": arrival.move_to} if arrival.move_to else {})
    for name, path in paths.items():
        if not is_remote(path):
            paths[name] = str(absolute_path(without_scheme(path), working_directory))
    plain = {name: path if is_remote(path) else os.path.normpath(path) for name, path in paths.items()}
    if "move_to" in plain and may_list(plain["from_"], plain["move_to"]):
        raise InvalidPipeline(
            f"arrival: the files moved to {arrival.move_to} would be in the landing zone {arrival.from_} again: move "
            "them to a folder outside of it, or to a hidden folder in it (its name begins with _ or .)"
        )
    return arrival.model_copy(update=paths)


def find_input(pipeline: Pipeline, file: Path | None = None) -> RunInput:
    """Find the files that a pipeline loads, and return their identity.

    A job without a source does not state its input. Its identity is then everything that it is started with.

    Args:
        file: the pipeline file, whose lines the messages name.

    Raises:
        InvalidInput: there are no files, or a file is empty, broken, or has a column that no table can store.
        InvalidPipeline: the pipeline names columns that the files do not have.
    """
    return inspect_input(pipeline, file).run_input


def inspect_input(pipeline: Pipeline, file: Path | None = None) -> InspectedInput:
    """Find the files that a pipeline loads, their identity and their columns, as `find_input` does."""
    write = pipeline.write
    if write.source:
        files = _find_files(write.source, file)
        if write.built_in:
            check_columns_in(files, write.source.reader_format(), is_transformed=write.transform is not None)
        columns = read_column_names(write.source, files)
        _check_columns(pipeline, columns, file)
        types = preview_types(write.source, files) if write.built_in else TypePreview()
        hints = problems_of_beginnings(write.source, files) if write.built_in else []
        hints += hints_on_stated_types(write.source, files) if write.built_in else []
        hints += types.hints if write.transform is None else []
        hints += check_type_hints(pipeline, {each.name: each.type for each in types.columns if each.type})
        if write.source.reader_format() == "csv" and not write.source.schema_:
            hints += hints_on_header(columns or [])
        hints += hints_on_repeated_loads(pipeline)
        return InspectedInput(identify_input(files, pipeline.scope), columns, types, hints)
    return InspectedInput(identify_input([], pipeline.scope, _identity_of_job(write)))


def _find_files(source: Source, file: Path | None) -> list[InputFile]:
    """Return the files of a source. If there are none, the error names the line of the path in the pipeline file."""
    try:
        return find_files(source)
    except NoFiles as error:
        if file is None:
            raise
        raise NoFiles("\n".join(locate(file, [(("write", "source", "path"), str(error))]))) from error


def _identity_of_job(write: Write) -> str:
    """Return everything that decides what a job without a source writes: its program, arguments and settings."""
    program = "" if write.built_in else hashlib.sha256(Path(write.job).read_bytes()).hexdigest()
    stated = (write.args, write.statements, write.options, write.environment, write.conf)
    return "\0".join([write.job, program, write.mode, *(json.dumps(each, sort_keys=True) for each in stated)])


def _check_columns(pipeline: Pipeline, columns: Sequence[str] | None, file: Path | None) -> None:
    """Check that the columns that a pipeline names exist in its input, as far as its columns are known.

    Raises:
        InvalidPipeline: some columns do not exist.
    """
    misplaced = transform_column_problems(pipeline, columns) if columns is not None else []
    written = columns_of_table(pipeline, columns)
    problems = [] if written is None else check_column_problems(pipeline, written)
    misplaced += [] if written is None else layout_column_problems(pipeline, written)
    problems += locate(file, misplaced) if file else [sentence for _, sentence in misplaced]
    if problems:
        raise InvalidPipeline("\n".join(dict.fromkeys(problems)))


def identify_paths(paths: Sequence[str], working_directory: Path) -> tuple[list[str], list[str]]:
    """Return paths as runs record them, and the identities of the files that can be read here.

    Raises:
        InvalidInput: no file can have such a path.
    """
    source = absolute_source(Source(path=list(paths), format="csv"), working_directory) if paths else None
    named = source.paths if source else []
    identities: list[str] = []
    for path in named:
        try:
            identities += [file.identity for file in find_files(Source(path=path, format="csv"))]
        except InvalidInput:  # the file is no longer here: search by its path alone
            continue
    return named, identities
