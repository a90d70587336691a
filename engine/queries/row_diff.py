"""Compare the rows of two versions of a table, in the process of a query.

Rows with a unique key are matched by it. All others are compared as a multiset of whole rows: added and removed, never
changed. Two nulls are equal, and two NaN are equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from engine.duckdb_session import FILE, POSITION, local_path
from engine.queries.specification import DiffedVersion, DiffSpecification
from engine.row_deletes import deleted_rows
from sluice.contracts.table_diffs import ChangedRow, ColumnChanges, PartitionChanges, RowDifferences
from sluice.diff.columns import PARTITION, DiffColumn, field_name
from sluice.diff.samples import MAX_LISTED, shown_change, shown_row, within
from sluice.sql.arrow_values import python_rows

BEFORE, AFTER = "sluice_before", "sluice_after"
"""The rows of each version that are compared, all with the same columns."""
_KEYED, _LOOSE, _REPEATED = "sluice_keyed", "sluice_loose", "sluice_repeated"
"""Rows that differ by key, rows that differ as a whole, and keys that occur more than once in a version."""


class RowDiff:
    """One comparison, on a connection that has the files of both versions as tables."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, specification: DiffSpecification, io: Mapping[str, str]
    ) -> None:
        self._connection, self._of, self._io = connection, specification, io
        self._columns = [each for each in specification.columns if each.in_after] or list(specification.columns)
        self._key = [field_name(each) for each in specification.key]

    def answer(self) -> RowDifferences:
        """Compare the rows, and return their numbers with some of them."""
        self._create_versions()
        if self._of.only_sample:
            return within(self._sample_alone(), self._of.sample_bytes)
        unmatched = self._find_unmatched() if self._key else RowDifferences()
        has_unmatched = unmatched.null_keys > 0 or unmatched.repeated_keys > 0
        self._compare_by_key(has_unmatched)
        by_value = self._compare_by_value(has_unmatched)
        counts = self._counts(by_value)
        return within(
            unmatched.model_copy(
                update={
                    **counts,
                    "compared_by_value": by_value if self._key else 0,
                    **self._changed_columns(),
                    **self._partitions(),
                    **self._samples(),
                }
            ),
            self._of.sample_bytes,
        )

    def _create_versions(self) -> None:
        """Create a view of each version with the same columns. A column that a version lacks is null in it."""
        positions = self._register_positions()
        raw = {}
        for name, version in ((BEFORE, self._of.before), (AFTER, self._of.after)):
            raw[name] = f"{name}_rows"
            self._connection.execute(f"CREATE TEMP VIEW {raw[name]} AS {_rows_of(name, version, positions[name])}")
        listed = ", ".join([*(each.sql for each in self._columns), PARTITION])
        for name, other in ((BEFORE, AFTER), (AFTER, BEFORE)):
            both = f"FROM {raw[name]} UNION ALL BY NAME (FROM {raw[other]} WHERE FALSE)"
            self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {listed} FROM ({both})")

    def _register_positions(self) -> dict[str, str]:
        """Register tables of the rows that only one version marks as deleted.

        Return, by version, the name of the table with the rows that this version alone still has among those files.
        """
        marked = {BEFORE: self._of.after, AFTER: self._of.before}
        tables = {}
        for name, other in marked.items():
            tables[name] = f"{name}_lost"
            paths = {path: local_path(path) for path in other.marked.paths}
            deletes = {path: files for path, files in other.deletes.items() if files}
            self._connection.register(f"{name}_deletes", deleted_rows(self._io, deletes, paths))
        self._connection.execute(
            f"CREATE TEMP VIEW {tables[BEFORE]} AS FROM {BEFORE}_deletes EXCEPT FROM {AFTER}_deletes;"
            f"CREATE TEMP VIEW {tables[AFTER]} AS FROM {AFTER}_deletes EXCEPT FROM {BEFORE}_deletes"
        )
        return tables

    def _find_unmatched(self) -> RowDifferences:
        """Find the keys that are null or occur more than once in a version; return their numbers."""
        has_null = " OR ".join(f"{each} IS NULL" for each in self._key)
        key = ", ".join(self._key)
        repeated = " UNION ".join(
            f"(SELECT {key} FROM {side} WHERE NOT ({has_null}) GROUP BY {key} HAVING count(*) > 1)"
            for side in (BEFORE, AFTER)
        )
        self._connection.execute(f"CREATE TEMP TABLE {_REPEATED} AS {repeated}")
        nulls = " + ".join(f"(SELECT count(*) FROM {side} WHERE {has_null})" for side in (BEFORE, AFTER))
        counted = self._row(f"SELECT {nulls}, (SELECT count(*) FROM {_REPEATED})")
        return RowDifferences(null_keys=counted[0], repeated_keys=counted[1])

    def _matchable(self, side: str, *, split: bool) -> str:
        """Return the rows of a version that a key matches."""
        if not self._key:
            return f"(SELECT * FROM {side} WHERE FALSE)"
        if not split:
            return side
        has_null = " OR ".join(f"{each} IS NULL" for each in self._key)
        return f"(SELECT * FROM {side} ANTI JOIN {_REPEATED} USING ({', '.join(self._key)}) WHERE NOT ({has_null}))"

    def _unmatchable(self, side: str, *, split: bool) -> str:
        """Return the rows of a version that no key matches."""
        if not self._key:
            return side
        if not split:
            return f"(SELECT * FROM {side} WHERE FALSE)"
        has_null = " OR ".join(f"{each} IS NULL" for each in self._key)
        return (
            f"(SELECT * FROM {side} SEMI JOIN {_REPEATED} USING ({', '.join(self._key)}) "
            f"UNION ALL SELECT * FROM {side} WHERE {has_null})"
        )

    def _compare_by_key(self, split: bool) -> None:
        """Create the table of the rows that differ by key, with the values of both versions."""
        on = " AND ".join(f"b.{each} = a.{each}" for each in self._key) or "b.here = a.here"
        differs = " OR ".join(f"b.{each.sql} IS DISTINCT FROM a.{each.sql}" for each in self._columns) or "FALSE"
        values = [f"b.{each.sql} AS b_{each.sql}, a.{each.sql} AS a_{each.sql}" for each in self._columns]
        listed = ", ".join([*values, f"coalesce(a.{PARTITION}, b.{PARTITION}) AS {PARTITION}"])
        before, after = (self._matchable(side, split=split) for side in (BEFORE, AFTER))
        self._connection.execute(
            f"CREATE TEMP TABLE {_KEYED} AS SELECT CASE WHEN b.here IS NULL THEN 'added' "
            f"WHEN a.here IS NULL THEN 'removed' ELSE 'changed' END AS kind, {listed} "
            f"FROM (SELECT *, TRUE AS here FROM {before}) AS b FULL JOIN (SELECT *, TRUE AS here FROM {after}) AS a "
            f"ON {on} WHERE b.here IS NULL OR a.here IS NULL OR {differs}"
        )

    def _compare_by_value(self, split: bool) -> int:
        """Create the table of the rows that differ as a whole, with their number; return the number of compared rows.

        A negative number says how often the row was removed.
        """
        listed = ", ".join(each.sql for each in self._columns)
        before, after = (self._unmatchable(side, split=split) for side in (BEFORE, AFTER))
        grouped = f"GROUP BY {listed}" if listed else "GROUP BY ()"
        selected = f"{listed}, " if listed else ""
        partition = f"coalesce(max({PARTITION}) FILTER (n > 0), max({PARTITION})) AS {PARTITION}"
        self._connection.execute(
            f"CREATE TEMP TABLE {_LOOSE} AS SELECT {selected}CAST(sum(n) AS BIGINT) AS n, {partition} FROM "
            f"(SELECT *, -1 AS n FROM {before} UNION ALL SELECT *, 1 AS n FROM {after}) {grouped} HAVING sum(n) <> 0"
        )
        if self._key and not split:
            return 0
        counted = self._row(f"SELECT (SELECT count(*) FROM {before}) + (SELECT count(*) FROM {after})")
        return int(counted[0])

    def _counts(self, by_value: int) -> dict[str, int]:
        keyed = dict(self._connection.execute(f"SELECT kind, count(*) FROM {_KEYED} GROUP BY 1").fetchall())
        loose = self._row(
            f"SELECT coalesce(sum(n) FILTER (n > 0), 0), coalesce(-sum(n) FILTER (n < 0), 0) FROM {_LOOSE}"
        )
        (before,) = self._row(f"SELECT count(*) FROM {BEFORE}")
        added, removed = keyed.get("added", 0) + int(loose[0]), keyed.get("removed", 0) + int(loose[1])
        changed = keyed.get("changed", 0)
        return {"added": added, "removed": removed, "changed": changed, "rewritten": before - removed - changed}

    def _changed_columns(self) -> dict[str, Any]:
        if not self._columns:
            return {}
        counts = ", ".join(f"count_if(b_{each.sql} IS DISTINCT FROM a_{each.sql})" for each in self._columns)
        counted = self._row(f"SELECT {counts} FROM {_KEYED} WHERE kind = 'changed'")
        changed = [
            ColumnChanges(column=column.name, cells=cells)
            for column, cells in zip(self._columns, counted, strict=True)
            if cells
        ]
        changed.sort(key=lambda each: -each.cells)
        return {"columns": changed[:MAX_LISTED], "more_columns": max(0, len(changed) - MAX_LISTED)}

    def _partitions(self) -> dict[str, Any]:
        if not (self._of.before.partitions or self._of.after.partitions):
            return {}
        rows = self._connection.execute(
            f"SELECT {PARTITION}, CAST(coalesce(sum(n) FILTER (kind = 'added'), 0) AS BIGINT), "
            f"CAST(coalesce(sum(n) FILTER (kind = 'removed'), 0) AS BIGINT), "
            f"CAST(coalesce(sum(n) FILTER (kind = 'changed'), 0) AS BIGINT), count(*) OVER () FROM ("
            f"SELECT {PARTITION}, kind, 1 AS n FROM {_KEYED} UNION ALL SELECT {PARTITION}, "
            f"CASE WHEN n > 0 THEN 'added' ELSE 'removed' END, abs(n) FROM {_LOOSE}) "
            f"GROUP BY 1 ORDER BY sum(n) DESC, 1 LIMIT {MAX_LISTED}"
        ).fetchall()
        listed = [
            PartitionChanges(partition=name or "", added=added, removed=removed, changed=changed)
            for name, added, removed, changed, _ in rows
        ]
        return {"partitions": listed, "more_partitions": rows[0][4] - len(rows) if rows else 0}

    def _samples(self) -> dict[str, Any]:
        added = self._sample("added", "a_", "n > 0", [each for each in self._columns if each.in_after])
        removed = self._sample("removed", "b_", "n < 0", [each for each in self._columns if each.in_before])
        return {"added_rows": added, "removed_rows": removed, "changed_rows": self._sample_changed()}

    def _sample(self, kind: str, prefix: str, sign: str, columns: Sequence[DiffColumn]) -> list[dict[str, Any]]:
        """Return some of the rows that were added or removed, by key or as a whole."""
        if not columns or not self._of.rows:
            return []
        keyed = ", ".join(f"{prefix}{each.sql} AS {each.sql}" for each in columns)
        loose = ", ".join(each.sql for each in columns)
        order = self._order()
        rows = self._dicts(
            f"SELECT * FROM (SELECT {keyed} FROM {_KEYED} WHERE kind = '{kind}') ORDER BY {order} LIMIT {self._of.rows}"
        )
        if len(rows) < self._of.rows:
            rows += self._dicts(
                f"SELECT {loose} FROM (SELECT *, unnest(range(least(abs(n), {self._of.rows}))) FROM {_LOOSE} "
                f"WHERE {sign}) ORDER BY {order} LIMIT {self._of.rows - len(rows)}"
            )
        return [shown_row({each.name: row[each.sql] for each in columns}) for row in rows]

    def _order(self) -> str:
        return ", ".join(self._key) or "1"

    def _sample_changed(self) -> list[ChangedRow]:
        if not self._key or not self._of.rows:
            return []
        differs = ", ".join(f"b_{each.sql} IS DISTINCT FROM a_{each.sql} AS d_{each.sql}" for each in self._columns)
        order = ", ".join(f"a_{each}" for each in self._key)
        rows = self._dicts(
            f"SELECT *, {differs} FROM {_KEYED} WHERE kind = 'changed' ORDER BY {order} LIMIT {self._of.rows}"
        )
        return [self._shown_change(row) for row in rows]

    def _shown_change(self, row: Mapping[str, Any]) -> ChangedRow:
        key = {each.name: row[f"a_{each.sql}"] for each in self._columns if each.sql in self._key}
        changed = [each for each in self._columns if row[f"d_{each.sql}"]]
        return shown_change(key, {each.name: (row[f"b_{each.sql}"], row[f"a_{each.sql}"]) for each in changed})

    def _sample_alone(self) -> RowDifferences:
        """Return some rows of the only version that has rows here."""
        rows = {}
        for field, side in (("added_rows", AFTER), ("removed_rows", BEFORE)):
            columns = [each for each in self._columns if (each.in_after if side == AFTER else each.in_before)]
            listed = ", ".join(each.sql for each in columns)
            sample = self._dicts(f"SELECT {listed} FROM {side} LIMIT {self._of.rows}") if listed else []
            rows[field] = [shown_row({each.name: row[each.sql] for each in columns}) for row in sample]
        return RowDifferences.model_validate(rows)

    def _row(self, sql: str) -> tuple[Any, ...]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        return rows[0]

    def _dicts(self, sql: str) -> list[dict[str, Any]]:
        return python_rows(self._connection.sql(sql).to_arrow_table())


def _rows_of(name: str, version: DiffedVersion, lost: str) -> str:
    """Return the query of the rows of one version, with the partition of each."""
    if version.in_memory:
        return f"FROM {version.files.name}"
    listed = "".join(f"{each.name}, " for each in version.files.fields)
    partition = f"{name}_partitions.partition AS {PARTITION}"
    return (
        f"SELECT {listed}{partition} FROM {version.files.name} AS rows LEFT JOIN {name}_partitions ON "
        f"{name}_partitions.file = rows.{FILE} UNION ALL "
        f"SELECT {listed}{partition} FROM {version.marked.name} AS rows JOIN {lost} AS lost ON "
        f"lost.file = rows.{FILE} AND lost.position = rows.{POSITION} LEFT JOIN {name}_partitions ON "
        f"{name}_partitions.file = rows.{FILE}"
    )


def register_partitions(connection: duckdb.DuckDBPyConnection, specification: DiffSpecification) -> None:
    """Register, for each version, a table with the partition of each data file."""
    for name, version in ((BEFORE, specification.before), (AFTER, specification.after)):
        paths = [local_path(path) for path in version.partitions]
        columns = [pa.array(paths, pa.string()), pa.array([*version.partitions.values()], pa.string())]
        connection.register(f"{name}_partitions", pa.table(columns, names=["file", "partition"]))
