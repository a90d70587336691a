"""SQL of a requeue: move quarantined rows back into their table, repaired, in a run of their pipeline."""

import hashlib
from collections.abc import Collection, Mapping, Sequence

from sluice.contracts.lake_queries import RequeuePlan, RequeueSelection
from sluice.contracts.run_request import RunInput
from sluice.errors import InvalidPipeline
from sluice.identifiers import literal, quoted, quoted_table, suggestion
from sluice.pipeline.loading_rules import require_allowed
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.quarantine_tables import ADDED_COLUMNS, RUN, quarantine_table
from sluice.sql.expression import columns_of, determinism_problem, expression_problem

_MAX_RUNS = 5000
"""Maximum number of runs whose rows one requeue moves. Its SQL names each run."""
_CHECKED = "sluice_checked"
_REPEATED = "two of the requeued rows have the same merge key: requeue them one by one, by --where or --run"
_EMPTY = "a requeued row has no value in a merge key: give one by --set, or leave it out by --where"


def requeued_table(pipeline: Pipeline, wanted: str | None) -> str:
    """Return the table whose quarantined rows are requeued: the wanted one, or the only candidate.

    Raises:
        InvalidPipeline: the wanted table has no row quarantine, or none is wanted and not exactly one table has it.
    """
    tables = [name for name, table in pipeline.tables.items() if table.on_bad_rows == "quarantine"]
    if wanted is None and len(tables) == 1:
        return tables[0]
    if wanted in tables:
        return str(wanted)
    raise InvalidPipeline(
        f"name a table by --table: those of {pipeline.name} with `on_bad_rows: quarantine` are: "
        f"{', '.join(tables) or 'none'}"
    )


def check_number_of_runs(quarantine: str, runs: int) -> None:
    """Check that one requeue can move the rows of so many runs.

    Raises:
        InvalidPipeline: there are too many.
    """
    if runs > _MAX_RUNS:
        raise InvalidPipeline(
            f"{quarantine} contains rows of {runs:,} runs, and one requeue moves those of at most {_MAX_RUNS:,}: "
            "name a run by --run"
        )


def plan_requeue(
    pipeline: Pipeline,
    table: str,
    selection: RequeueSelection,
    *,
    columns: Mapping[str, str],
    quarantined_columns: Mapping[str, str],
    inexact: Collection[str],
    quarantine_location: str,
    quarantine_snapshot: int | None,
    spark_catalog: str,
) -> RequeuePlan:
    """Plan a run that moves rows from a quarantine table back into their table, with the checks of the pipeline.

    Args:
        columns: columns of the table, by name with their Iceberg types.
        quarantined_columns: columns of its quarantine table.
        inexact: columns of both whose type in the table may not store a quarantined value as it is.
        quarantine_location: metadata location of the quarantine table.
        quarantine_snapshot: snapshot of the quarantine table. Location and snapshot are part of the input's identity.
        spark_catalog: name of the catalog in Spark.

    Raises:
        InvalidPipeline: a column does not exist or may not store each value, a repair is not an expression, the
            condition is not deterministic, or the pipeline replaces rows.
    """
    require_allowed("requeue", pipeline.write, [table])
    values = _parse_values(selection.values, columns, quarantined_columns)
    where = _where_clause(selection, quarantined_columns)
    _check_all_used(table, values, columns, quarantined_columns)
    names = [name for name in columns if name in quarantined_columns or name in values]
    for name in (each for each in names if each in inexact and each not in values):
        raise InvalidPipeline(
            f"the quarantined rows have {name!r} as {quarantined_columns[name]}, and {table} has it as {columns[name]}"
            f", so Spark may round or cut values. State the conversion by --set {name}=EXPRESSION"
        )
    selected = ", ".join(f"{values.get(name, quoted(name))} AS {quoted(name)}" for name in names)
    target, source = (quoted_table(name, spark_catalog) for name in (table, quarantine_table(table)))
    keys = pipeline.write.keys
    rows = f"SELECT {selected} FROM {source}{where}"
    statements = [_merge(target, rows, names, keys) if keys else _insert(target, rows, names)]
    statements.append(f"DELETE FROM {source}{where}")
    changed = pipeline.model_copy(
        update={
            "write": Write(mode="requeue", statements=statements, keys=keys),
            "tables": {table: pipeline.tables[table], quarantine_table(table): Table()},
        }
    )
    digest = requeue_digest(quarantine_location, quarantine_snapshot, statements)
    return RequeuePlan(
        pipeline=Pipeline.model_validate(changed.model_dump(by_alias=True)), input=RunInput(digest=digest)
    )


def _insert(target: str, rows: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {target} ({', '.join(map(quoted, names))}) {rows}"


def _merge(target: str, rows: str, names: Sequence[str], keys: Sequence[str]) -> str:
    """Return the SQL that merges rows by keys. It fails if two rows have the same key, or a row has none.

    Raises:
        InvalidPipeline: the quarantined rows lack a key.
    """
    missing = [key for key in keys if key not in names]
    if missing:
        raise InvalidPipeline(f"the quarantined rows have no merge key {missing[0]!r}: give it by --set")
    listed = ", ".join(map(quoted, keys))
    repeated = f"if(count(*) OVER (PARTITION BY {listed}) > 1, raise_error({literal(_REPEATED)}), true)"
    empty = " OR ".join(f"{quoted(key)} IS NULL" for key in keys)
    checked = f"SELECT *, {repeated} AS {_CHECKED} FROM ({rows}) AS selected"
    incoming = (
        f"SELECT * FROM ({checked}) AS checked WHERE {_CHECKED} AND if({empty}, raise_error({literal(_EMPTY)}), true)"
    )
    matched = " AND ".join(f"old.{quoted(key)} = new.{quoted(key)}" for key in keys)
    updates = ", ".join(f"old.{quoted(name)} = new.{quoted(name)}" for name in names)
    values = ", ".join(f"new.{quoted(name)}" for name in names)
    return (
        f"MERGE INTO {target} AS old USING ({incoming}) AS new ON {matched} WHEN MATCHED THEN UPDATE SET {updates} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(map(quoted, names))}) VALUES ({values})"
    )


def requeue_digest(quarantine_location: str, quarantine_snapshot: int | None, statements: Sequence[str]) -> str:
    """Return the identity of a requeue's input: the version of the quarantine table, and the SQL.

    The version consists of location and snapshot, because several versions may share a metadata file.
    """
    parts = ["requeue", quarantine_location, str(quarantine_snapshot), *statements]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _parse_values(
    repairs: Sequence[str], columns: Mapping[str, str], quarantined_columns: Mapping[str, str]
) -> dict[str, str]:
    """Return the SQL of each repaired value, by column."""
    values = {}
    for repair in repairs:
        column, sign, expression = repair.partition("=")
        column = column.strip()
        if not sign:
            raise InvalidPipeline(f"--set {repair!r}: write COLUMN=SQL, such as {column or 'amount'}=NULL")
        is_left_out = column in quarantined_columns and expression.strip().upper() == "NULL"
        if column in ADDED_COLUMNS or (column not in columns and not is_left_out):
            raise InvalidPipeline(f"--set {repair!r}: {column!r} is not a column{suggestion(column, columns)}")
        _check_expression(f"--set {repair!r}", expression, quarantined_columns)
        values[column] = f"({expression.strip()})"
    return values


def _check_all_used(
    table: str, values: Mapping[str, str], columns: Mapping[str, str], quarantined_columns: Mapping[str, str]
) -> None:
    """Check that each quarantined column is one of the table, or used or left out by a repair, so no value is lost.

    Raises:
        InvalidPipeline: a column is neither, as after a column of the table was renamed.
    """
    named = {*values, *(name for expression in values.values() for name in columns_of(expression))}
    for name in quarantined_columns:
        if name not in columns and name not in ADDED_COLUMNS and name not in named:
            raise InvalidPipeline(
                f"the quarantined rows have a column {name!r} that {table} lacks: if it was renamed, name the new "
                f"column by --set NEW={name}; to leave out its values, add --set {name}=NULL"
            )


def _where_clause(selection: RequeueSelection, quarantined_columns: Mapping[str, str]) -> str:
    conditions = [f"{RUN} = {literal(selection.run)}"] if selection.run else []
    if selection.runs is not None and not selection.run:
        conditions.append(f"{RUN} IN ({', '.join(map(literal, selection.runs))})")
    if selection.where:
        option = f"--where {selection.where!r}"
        _check_expression(option, selection.where, quarantined_columns)
        if problem := determinism_problem(selection.where):
            raise InvalidPipeline(f"{option}: {problem}")
        conditions.append(f"({selection.where})")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _check_expression(option: str, expression: str, columns: Mapping[str, str]) -> None:
    problem = expression_problem(expression)
    unknown = [name for name in ([] if problem else columns_of(expression)) if name not in columns]
    if unknown:
        problem = f"there is no column {unknown[0]!r}{suggestion(unknown[0], columns)}"
    if problem:
        raise InvalidPipeline(f"{option}: {problem}")
