"""The command that puts repaired rows of a quarantine table through their pipeline again."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.context import CommandContext, run_command
from cli.follow import start_and_follow
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.iceberg.table_state import TableState
from lakehouse.open_catalog import open_catalog
from runtime.start_run import StartOptions, load_pipeline
from sluice.audit.bad_rows import RUN, quarantine_table
from sluice.contracts.run import RunInput
from sluice.errors import InvalidPipeline
from sluice.identifiers import literal, quoted, quoted_table, suggestion
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.settings import Settings, read_environment, read_settings
from sluice.sql.expression import columns_of, expression_problem

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Repair:
    """Which rows are put through again, and with what in place of what is wrong with them."""

    table: str | None
    run: str | None
    where: str | None
    settings: Sequence[str]


@app.command()
def requeue(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file whose run set the rows apart.")],
    table: Annotated[str | None, typer.Option(help="The table, where the pipeline has several.")] = None,
    run: Annotated[str | None, typer.Option(help="Only rows that this run (its id) set apart.")] = None,
    where: Annotated[str | None, typer.Option(help="Only rows of which this condition is true.")] = None,
    repairs: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=SQL", help="A repair: what a column is to hold.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")] = False,
) -> None:
    """Put rows of a quarantine table through the pipeline again: a run of its own, audited, published by one merge."""
    repair = Repair(table, run, where, repairs or [])

    def prepare() -> tuple[Pipeline, RunInput]:
        return requeued(pipeline, repair, read_settings(read_environment()))

    async def command(context: CommandContext, prepared: tuple[Pipeline, RunInput]) -> int:
        return await start_and_follow(context, *prepared, StartOptions(), detach=detach)

    run_command(command, as_json, prepare)


def requeued(file: Path, repair: Repair, settings: Settings) -> tuple[Pipeline, RunInput]:
    """Return a pipeline that moves rows from a quarantine table back into their table, with the checks of `file`.

    Raises:
        InvalidPipeline: there is no such table or column, or a repair is no expression.
    """
    pipeline = load_pipeline(file, read_environment(), Path.cwd())
    table = _table(pipeline, repair.table)
    catalog = open_catalog(settings)
    head = catalog.initialize_main()
    types = _types(catalog, settings, table, head)
    kept = _types(catalog, settings, quarantine_table(table), head)
    values = _values(repair.settings, types, kept)
    chosen = _chosen(repair, kept)
    names = [name for name in types if name in kept or name in values]
    selected = ", ".join(values.get(name, quoted(name)) for name in names)
    ours, theirs = (quoted_table(name, settings.sluice_catalog) for name in (table, quarantine_table(table)))
    statements = [
        f"INSERT INTO {ours} ({', '.join(map(quoted, names))}) SELECT {selected} FROM {theirs}{chosen}",
        f"DELETE FROM {theirs}{chosen}",
    ]
    again = pipeline.model_copy(
        update={
            "write": Write(mode="sql", statements=statements),
            "tables": {table: pipeline.tables[table], quarantine_table(table): Table()},
        }
    )
    version = catalog.table_version(catalog.main, quarantine_table(table), head)
    place = version.metadata_location if version else ""
    digest = hashlib.sha256("\0".join(["requeue", place, *statements]).encode()).hexdigest()
    return Pipeline.model_validate(again.model_dump(by_alias=True)), RunInput(digest=digest)


def _table(pipeline: Pipeline, wanted: str | None) -> str:
    able = [name for name, table in pipeline.tables.items() if table.on_bad_rows == "quarantine"]
    if wanted is None and len(able) == 1:
        return able[0]
    if wanted in able:
        return str(wanted)
    listed = ", ".join(able) or "none"
    raise InvalidPipeline(
        f"say by --table which table's rows: those of {pipeline.name} with a quarantine are: {listed}"
    )


def _types(catalog: BranchCatalog, settings: Settings, table: str, at: str) -> dict[str, str]:
    version = catalog.table_version(catalog.main, table, at)
    if version is None:
        raise InvalidPipeline(f"there is no table {table} on {catalog.main}: nothing was set apart yet")
    return TableState.load(version, None, file_io_properties(settings)).types


def _values(settings: Sequence[str], types: dict[str, str], kept: dict[str, str]) -> dict[str, str]:
    found = {}
    for setting in settings:
        column, sign, expression = setting.partition("=")
        column = column.strip()
        if not sign or column not in types:
            raise InvalidPipeline(f"--set {setting!r}: {column!r} is no column{suggestion(column, types)}")
        _check(f"--set {setting!r}", expression, kept)
        found[column] = f"({expression.strip()})"
    return found


def _chosen(repair: Repair, kept: dict[str, str]) -> str:
    tests = [f"{RUN} = {literal(repair.run)}"] if repair.run else []
    if repair.where:
        _check(f"--where {repair.where!r}", repair.where, kept)
        tests.append(f"({repair.where})")
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _check(what: str, expression: str, kept: dict[str, str]) -> None:
    why = expression_problem(expression)
    wrong = [name for name in ([] if why else columns_of(expression)) if name not in kept]
    if why or wrong:
        raise InvalidPipeline(f"{what}: {why or f'there is no column {wrong[0]!r}{suggestion(wrong[0], kept)}'}")
