"""Choose the key that matches the rows of two versions of a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sluice.checks.base import Check
from sluice.checks.uniqueness import Unique, UniqueCombinationOfColumns
from sluice.contracts.table_diffs import RowDifferences, TableKey
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion
from sluice.metadata.statistics import SchemaField
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.sizes import format_count
from sluice.sql.values import ORDERED, kind_of

_KINDS = (*ORDERED, "boolean", "uuid", "time", "binary", "fixed")
"""Kinds of columns that a key may have."""
NO_KEY = "no key is known, so rows are compared as a whole and none counts as changed: choose one with --key COLUMN"


def pipeline_keys(pipeline: Pipeline) -> dict[str, TableKey]:
    """Return the keys that a pipeline states, by table: the keys of its merge, or else those of a check."""
    if pipeline.write.keys:
        return {name: TableKey(columns=pipeline.write.keys, source="merge keys") for name in pipeline.tables}
    return checked_keys(pipeline.tables)


def checked_keys(tables: dict[str, Table]) -> dict[str, TableKey]:
    """Return the keys that checks of uniqueness state, by table."""
    keys = {name: _checked_key(table.checks) for name, table in tables.items()}
    return {name: key for name, key in keys.items() if key}


def _checked_key(checks: Sequence[Check]) -> TableKey | None:
    """Return the key of the first check of uniqueness over all rows. A check that only warns comes last."""
    unique = [each for each in checks if isinstance(each, Unique | UniqueCombinationOfColumns) and not each.where]
    if not unique:
        return None
    first = min(unique, key=lambda check: check.severity == "warn")
    return TableKey(columns=first.keys(), source="unique check")


@dataclass(frozen=True)
class MatchedKey:
    """The key of a comparison, by field id, or the reason why there is none."""

    key: TableKey = field(default_factory=TableKey)
    ids: list[int] = field(default_factory=list)
    note: str = ""


def match_key(key: TableKey, before: Sequence[SchemaField], after: Sequence[SchemaField]) -> MatchedKey:
    """Return the key by field id. Each of its columns must exist in both versions.

    A name is that of a column after the change, or else that of one before it.
    """
    if not key.columns:
        return MatchedKey(note=NO_KEY)
    named = {**{each.name: each for each in before}, **{each.name: each for each in after}}
    both = {each.id for each in before} & {each.id for each in after}
    for name in key.columns:
        column = named.get(name)
        problem = "does not exist" if column is None else "" if column.id in both else "exists in one version only"
        if column and kind_of(column.type) not in _KINDS:
            problem = f"is {kind_of(column.type)}, which cannot be a key"
        if problem:
            return MatchedKey(note=f"the column {name!r} of the key ({key.source}) {problem}: {NO_KEY}")
    names = {each.id: each.name for each in (*before, *after)}
    ids = list(dict.fromkeys(named[name].id for name in key.columns))
    return MatchedKey(TableKey(columns=[names[each] for each in ids], source=key.source), ids)


def check_chosen_key(key: Sequence[str], columns: dict[str, Sequence[str]]) -> None:
    """Check that at least one table has all columns of the key that a person chose.

    Args:
        columns: names of the columns of each table, before and after.

    Raises:
        InvalidInput: no table has them.
    """
    if not key or not columns or any(set(key) <= set(names) for names in columns.values()):
        return
    known = list(dict.fromkeys(name for names in columns.values() for name in names))
    missing = next((name for name in key if name not in known), None)
    if missing is None:
        raise InvalidInput(f"--key: no table has all of the columns {', '.join(key)}")
    hint = suggestion(missing, known) or f"; there are {', '.join(known[:20])}"
    raise InvalidInput(f"--key: there is no column {missing[:100]!r} in {', '.join(columns)}{hint}")


def key_notes(rows: RowDifferences) -> list[str]:
    """Return sentences about keys that do not identify one row each."""
    notes = []
    if rows.null_keys:
        notes.append(f"{format_count(rows.null_keys, 'row')} with a null in the key")
    if rows.repeated_keys:
        notes.append(f"{format_count(rows.repeated_keys, 'key')} in more than one row of a version")
    if not notes:
        return []
    return [f"the key is not unique: {' and '.join(notes)}; those rows are compared as a whole, and none as changed"]
