"""Shorten the values and rows of a diff, so that the answer fits into one message.

A diff shows values of rows, as `quarantine show` and `query` do: its reader can read the tables. Reasons of runs, which
go to more people, never quote them (`sluice/row_values.py`).
"""

import json
from collections.abc import Mapping
from typing import Any

from sluice.checks.verdicts import short_row
from sluice.contracts.table_diffs import ChangedCell, ChangedRow, RowDifferences, SchemaChange, TableDiffResult
from sluice.sql.values import json_value

MAX_SAMPLE_BYTES = 600_000
"""Maximum size of the sample rows of all tables, in bytes: with the counts, they fit into one message."""
MAX_LISTED = 100
"""Maximum number of changed columns, of partitions and of schema changes that are listed for a table."""
_NESTED = 500
"""Maximum length of a nested value as JSON, in characters."""


def shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an engine with JSON values, and with long values shortened."""
    return short_row({name: _short_nested(json_value(value)) for name, value in row.items()})


def shown_change(key: Mapping[str, Any], cells: Mapping[str, tuple[Any, Any]]) -> ChangedRow:
    """Return a changed row with its key and its changed cells, each with the value before and after."""
    before = shown_row({name: pair[0] for name, pair in cells.items()})
    after = shown_row({name: pair[1] for name, pair in cells.items()})
    changed = {name: ChangedCell(before=before[name], after=after[name]) for name in cells}
    return ChangedRow(key=shown_row(key), cells=changed)


def _short_nested(value: Any) -> Any:
    if not isinstance(value, dict | list):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _NESTED else text[:_NESTED] + "…"


def within(rows: RowDifferences, limit: int) -> RowDifferences:
    """Return differences whose sample rows take at most `limit` bytes. Each kind of rows gets a third of it."""
    each = limit // 3
    return rows.model_copy(
        update={
            "added_rows": _first(rows.added_rows, each),
            "removed_rows": _first(rows.removed_rows, each),
            "changed_rows": _first(rows.changed_rows, each),
        }
    )


def _first(rows: list[Any], limit: int) -> list[Any]:
    """Return the first rows that together take at most `limit` bytes."""
    size = 0
    for index, row in enumerate(rows):
        text = row.model_dump_json() if isinstance(row, ChangedRow) else json.dumps(row, ensure_ascii=False)
        size += len(text.encode())
        if size > limit:
            return rows[:index]
    return rows


def listed_changes(changes: list[SchemaChange]) -> tuple[list[SchemaChange], int]:
    """Return the first schema changes, and the number of the others."""
    return changes[:MAX_LISTED], max(0, len(changes) - MAX_LISTED)


def trim(tables: list[TableDiffResult]) -> list[TableDiffResult]:
    """Return diffs whose sample rows fit together into one message, each table with the same share."""
    share = MAX_SAMPLE_BYTES // max(1, len(tables))
    return [table.model_copy(update={"rows": within(table.rows, share)}) if table.rows else table for table in tables]
