"""A request for generated rows: the columns, the checks that they must pass, and the faults to plant."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from generation.columns import (
    DEFAULT_SHAPE,
    Column,
    TableShape,
    columns_of_checks,
    columns_of_schema,
)
from generation.demands import Known, reference_key
from generation.faults import Planter, is_of_rows
from generation.judging import Judge, Judgement, Row, RowEngine
from generation.labels import Fault, check_labels, parse_faults
from generation.rows import RowMaker
from generation.simple_queries import as_condition
from generation.transforms import transformed
from sluice.checks.base import Check
from sluice.checks.counts import RowCount
from sluice.checks.references import Relationships
from sluice.checks.time_series import Freshness
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.sql.values import typed

DEFAULT_ROWS = 1000


@dataclass(frozen=True)
class Request:
    """A request for generated rows."""

    table: str
    """The table of the pipeline; empty without one."""
    shape: TableShape
    checks: Sequence[Check]
    rows: int
    seed: int
    no_null: bool
    now: datetime
    references: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    samples: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Sample values of the columns, in their types, each as often as it occurs."""


@dataclass(frozen=True)
class Generated:
    """Generated rows, with notes about them."""

    rows: Sequence[Row]
    maker: RowMaker
    notes: Sequence[str]
    """The checks that were not considered, with reasons; the planted faults; other checks that these break."""


def generated_table(pipeline: Pipeline) -> str:
    """Return the table whose rows can be generated: the only table of a pipeline that loads files.

    Raises:
        InvalidPipeline: the pipeline loads no files, or writes several tables.
    """
    if pipeline.write.source is None:
        raise InvalidPipeline(f"{pipeline.name} loads no files: rows are generated for a pipeline with write.source")
    if len(pipeline.tables) != 1:
        raise InvalidPipeline(f"{pipeline.name} writes several tables: rows are generated for a pipeline of one")
    return next(iter(pipeline.tables))


def shape_of(pipeline: Pipeline | None, of_table: Sequence[Column] | None = None) -> TableShape:
    """Return the columns of the rows, from the source's schema, from the table, or from the checks."""
    if pipeline is None:
        return DEFAULT_SHAPE
    name = generated_table(pipeline)
    source, transform = pipeline.write.source, pipeline.write.transform
    if source is not None and source.schema_:
        return transformed(columns_of_schema(source.schema_), "write.source.schema", transform)
    if transform is not None:
        raise InvalidPipeline(f"{pipeline.name} has a transform: state the columns of its files in write.source.schema")
    if of_table:
        return TableShape(of_table, f"the table {name} on main")
    columns = columns_of_checks(pipeline.tables[name].checks)
    if not columns:
        raise InvalidPipeline(
            f"the columns of {pipeline.name} are not known: its checks name none. State them in write.source.schema"
        )
    return TableShape(columns, "what the checks name", is_stated=False)


def checks_of(pipeline: Pipeline | None) -> Sequence[Check]:
    """Return the checks that generated rows must pass."""
    return [] if pipeline is None else pipeline.tables[generated_table(pipeline)].checks


def default_rows(checks: Sequence[Check]) -> int:
    """Return the default number of rows: 1,000, or the nearest number that the checks allow."""
    rows = DEFAULT_ROWS
    for check in checks:
        if isinstance(check, RowCount) and not check.where:
            rows = max(rows, check.min or 0)
            rows = min(rows, check.max) if check.max is not None else rows
    return rows


def reference_time(checks: Sequence[Check], now: datetime) -> datetime:
    """Return the time near which generated times lie. It is rounded, so that rows change as rarely as possible."""
    ages = [check.max_age for check in checks if isinstance(check, Freshness)]
    start = now.replace(minute=0, second=0, microsecond=0)
    if not ages or min(ages) >= 2 * 86400:
        return start.replace(hour=0)
    return start if min(ages) >= 4 * 3600 else now.replace(second=0, microsecond=0)


def wanted_references(checks: Sequence[Check]) -> dict[str, Relationships]:
    """Return the foreign keys whose values are in other tables, by `reference_key`."""
    return {reference_key(each): each for each in checks if isinstance(each, Relationships)}


def typed_references(
    answers: Mapping[str, Sequence[Any]], checks: Sequence[Check], shape: TableShape
) -> dict[str, list[Any]]:
    """Convert the values of other tables from JSON to the type of the column that refers to them.

    A reference with values that are not of that type is left out, so that its check is not considered.
    """
    references: dict[str, list[Any]] = {}
    for key, check in wanted_references(checks).items():
        kind = shape.types.get(check.column)
        if kind and (values := answers.get(key)):
            with suppress(ValueError):
                references[key] = [typed(each, kind) for each in values if each is not None]
    return references


def typed_samples(rows: Sequence[Mapping[str, Any]], shape: TableShape) -> dict[str, list[Any]]:
    """Convert the values of each column in sample rows to its type. Values of another type are left out."""
    samples: dict[str, list[Any]] = {}
    for name, kind in shape.types.items():
        for row in rows:
            if row.get(name) not in (None, ""):
                with suppress(ValueError):
                    samples.setdefault(name, []).append(typed(row[name], kind))
    return samples


def make_maker(request: Request, engine: RowEngine) -> RowMaker:
    """Return the maker of a request's rows."""
    checks = [as_condition(each, request.table) for each in request.checks]
    known = Known(request.rows, request.no_null, request.now, request.references, request.samples)
    judge = Judge(request.shape, checks, engine, request.now, request.references)
    return RowMaker(judge, known, request.seed)


def generate(request: Request, engine: RowEngine, faults: Sequence[str] = ()) -> Generated:
    """Generate rows that the checks accept, except for the planted faults.

    Raises:
        InvalidPipeline: the checks cannot all be satisfied, or a fault cannot be planted.
    """
    # Faults of all rows are planted first, because they may replace rows that have another fault.
    planned = sorted(parse_faults(faults, request.checks), key=lambda fault: is_of_rows(request.checks[fault.index]))
    maker = make_maker(request, engine)
    judge, rows, labels = maker.judge, maker.make(), check_labels(request.checks)
    notes = refuse_bad(judge, rows, labels)
    planter, taken = Planter(maker), set[int]()
    for fault in planned:
        planted = planter.plant(fault, rows, taken)
        if planted.problem:
            raise InvalidPipeline(f"no fault can be planted for {fault.label}: {planted.problem}")
        rows, taken = planted.rows, taken | planted.positions
        notes.append(f"{fault.label}: {planted.what}")
    if planned:
        judgements = judge.judge(rows)
        _refuse_undone(judgements, planned)
        notes += _beside(judgements, labels, {fault.index for fault in planned})
    return Generated(rows, maker, notes)


def refuse_bad(judge: Judge, rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return a note for each check that was not considered.

    Raises:
        InvalidPipeline: a check refuses the rows, because the checks contradict each other or the request.
    """
    judgements = judge.judge(rows)
    refused = [
        f"{label} expects {judge.checks[at].expected}, and the rows have {each.evaluation.observed}"
        for at, (label, each) in enumerate(zip(labels, judgements, strict=True))
        if each.evaluation is not None and not each.accepts
    ]
    if refused:
        raise InvalidPipeline("no rows could be generated that all checks accept: " + "; ".join(refused))
    return [
        f"{label} was not considered: {each.reason}"
        for label, each in zip(labels, judgements, strict=True)
        if each.reason
    ]


def _refuse_undone(judgements: Sequence[Judgement], planned: Sequence[Fault]) -> None:
    """Raise InvalidPipeline if a check passes despite its fault, because a later fault changed the same rows."""
    evaluations = [(fault.label, judgements[fault.index].evaluation) for fault in planned]
    if undone := [label for label, evaluation in evaluations if evaluation is not None and evaluation.passed]:
        raise InvalidPipeline(
            f"{', '.join(undone)} would pass, since another fault changes the same rows: plant it in a separate file"
        )


def _beside(judgements: Sequence[Judgement], labels: Sequence[str], planted: set[int]) -> list[str]:
    return [
        f"{labels[at]} is broken too: {each.evaluation.observed}"
        for at, each in enumerate(judgements)
        if at not in planted and each.evaluation is not None and not each.accepts
    ]
