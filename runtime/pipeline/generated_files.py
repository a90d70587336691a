"""Files of generated rows for a pipeline: query a worker about the lake, generate rows, and write them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from generation.columns import Column, columns_of_table
from generation.judging import Row
from generation.requests import (
    Generated,
    Request,
    checks_of,
    default_rows,
    generate,
    generated_table,
    reference_time,
    shape_of,
    typed_references,
    typed_samples,
    wanted_references,
)
from generation.rows import without_computed
from lakehouse.source_files import check_writable, local_folder, suffix_of, write_rows
from runtime.installation.reached_installation import connect_command
from runtime.pipeline.row_engine import DuckDBRows
from runtime.pipeline.source_sample import sample_source
from runtime.short_workflow import query_lake
from sluice.checks.references import Relationships
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.errors import SluiceError
from sluice.identifiers import name_elements
from sluice.pipeline.model import Pipeline
from sluice.pipeline.source import Source, format_of
from sluice.settings import read_settings
from sluice.sql.dialect import DUCKDB

_SOURCE_OF_PROGRAMS = Source(path="rows.csv")
"""Source that determines the file format for a pipeline that states no source."""
_MOST_KEYS = 10_000
_SAMPLED = 500


@dataclass(frozen=True)
class Options:
    """Options of a person for generated files."""

    rows: int | None = None
    """Number of rows; None for as many as the checks allow, near a thousand."""
    seed: int = 7
    no_null: bool = False
    faults: Sequence[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """Values of the pipeline's placeholders."""


@dataclass(frozen=True)
class LakeAnswers:
    """Answers of a worker about the tables of a pipeline."""

    columns: Sequence[Column] | None = None
    """Columns of the pipeline's table on main."""
    keys: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values that foreign keys may have, by `reference_key`."""
    rows: Sequence[Mapping[str, Any]] = ()
    """Sample rows of the table."""
    problems: Sequence[str] = ()
    """Failed queries, as messages for a person."""


def needs_lake(pipeline: Pipeline | None) -> bool:
    """Return True if generating rows needs columns or keys that the lake knows and the pipeline does not state."""
    if pipeline is None or pipeline.write.source is None:
        return False
    return not pipeline.write.source.schema_ or bool(wanted_references(checks_of(pipeline)))


async def ask_lake(pipeline: Pipeline, environment: Mapping[str, str]) -> LakeAnswers:
    """Query a worker for the columns of a pipeline's table, and for the keys of tables that it refers to."""
    try:
        client = (await connect_command(environment, read_only=True)).client
    except SluiceError as error:
        return LakeAnswers(problems=[f"the lake was not queried: {error}"])
    return await ask_worker(client, pipeline, environment)


async def ask_worker(client: Client, pipeline: Pipeline, environment: Mapping[str, str]) -> LakeAnswers:
    """Query as `ask_lake` does, with a connected client."""
    problems: list[str] = []
    columns: Sequence[Column] | None = None
    rows: list[Mapping[str, Any]] = []
    source = pipeline.write.source
    if source is None or not source.schema_:
        table = _named(generated_table(pipeline))
        described = await _ask(client, f"DESCRIBE {table}", environment, problems)
        columns = columns_of_table({str(row[0]): str(row[1]) for row in described}) if described else None
        sampled = await _ask(client, f"FROM {table} USING SAMPLE {_SAMPLED} ROWS", environment, []) if columns else []
        rows = [dict(zip([each.name for each in columns or ()], row, strict=True)) for row in sampled]
    keys: dict[str, Sequence[Any]] = {}
    for key, check in wanted_references(checks_of(pipeline)).items():
        keys[key] = [row[0] for row in await _ask(client, _key_query(check), environment, problems)]
    return LakeAnswers(columns, keys, rows, problems)


def _key_query(check: Relationships) -> str:
    column = DUCKDB.column(check.field)
    table = _named(check.to)
    return f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1 LIMIT {_MOST_KEYS}"


def _named(table: str) -> str:
    *namespace, name = name_elements(table)
    return f"{DUCKDB.column('.'.join(namespace))}.{DUCKDB.column(name)}"


async def _ask(client: Client, sql: str, environment: Mapping[str, str], problems: list[str]) -> list[list[Any]]:
    try:
        answer = await query_lake(client, read_settings(environment).installation, QueryTablesInput(sql=sql), QueryRows)
        return answer.rows
    except (SluiceError, RPCError) as error:
        problems.append(f"the lake did not answer: {error}")
        return []


def prepare_request(pipeline: Pipeline | None, answers: LakeAnswers, options: Options, now: datetime) -> Request:
    """Return the request to generate rows.

    Raises:
        InvalidPipeline: rows or files of this pipeline cannot be generated.
    """
    if pipeline is not None and pipeline.write.source is not None:
        check_writable(pipeline.write.source)
    shape, checks = shape_of(pipeline, answers.columns), checks_of(pipeline)
    rows = default_rows(checks) if options.rows is None else options.rows
    references = typed_references(answers.keys, checks, shape)
    table = generated_table(pipeline) if pipeline else ""
    source = pipeline.write.source if pipeline else None
    samples = typed_samples((source and sample_source(source)) or answers.rows, shape)
    at = reference_time(checks, now)
    return Request(table, shape, checks, rows, options.seed, options.no_null, at, references, samples)


def generate_file(
    pipeline: Pipeline | None, request: Request, options: Options, folder: str, source: Source
) -> tuple[Path, Generated, int]:
    """Write a file of generated rows. Return its path, the rows, and their number.

    Args:
        source: the source that will read the file, which determines its format.

    Raises:
        InvalidPipeline: the checks cannot be satisfied, or a fault cannot be planted.
        InvalidInput: the file cannot be written.
    """
    generated = generate(request, DuckDBRows(), options.faults)
    path = local_folder(folder) / _file_name(pipeline, options, len(generated.rows), source)
    write_file(path, generated.rows, request, source)
    return path, generated, len(generated.rows)


def write_file(path: Path, rows: Sequence[Row], request: Request, source: Source) -> None:
    """Write generated rows in the form that the pipeline's reader expects."""
    types = {each.name: each.type for each in request.shape.columns}
    write_rows(path, without_computed(rows, request.shape), types, source)


def source_of(pipeline: Pipeline) -> Source:
    """Return the source of a pipeline, or a default one for a pipeline without a source."""
    return pipeline.write.source or _SOURCE_OF_PROGRAMS


def source_of_environment(environment: Mapping[str, str]) -> Source:
    """Return the source for files without a pipeline: its format is that of the suffix of S3_PATH, or Parquet."""
    return Source(path=f"rows{suffix_of(format_of(environment.get('S3_PATH', '').strip()) or 'parquet')}")


def _file_name(pipeline: Pipeline | None, options: Options, rows: int, source: Source) -> str:
    """Return a file name that differs for different arguments."""
    more = [*options.faults, *(["no-null"] if options.no_null else [])]
    more += [f"{name}={value}" for name, value in sorted(options.values.items())]
    digest = f"-{hashlib.sha256(json.dumps(more).encode()).hexdigest()[:8]}" if more else ""
    name = pipeline.name if pipeline else "rows"
    return f"{name}-seed{options.seed}-{rows}{digest}{suffix_of(source.reader_format())}"
