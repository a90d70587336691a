"""Compare the rows of tables at two hashes."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from temporalio import activity

from activities.lake.table_diff import DiffedTable
from engine.queries.runner import QueryRunner
from lakehouse.catalog import BranchCatalog, TableDiff
from lakehouse.iceberg.differing_files import DifferingFiles, VersionFiles, find_differing_files
from lakehouse.lake.diffed_states import DiffedStates, find_diffed_states, recorded_keys
from lakehouse.publishing.table_versions import tables_changed_since
from sluice.contracts.lake_queries import check_result_size
from sluice.contracts.table_diffs import DiffTablesInput, DiffTablesResult, TableDiffResult, TableKey
from sluice.diff.keys import check_chosen_key
from sluice.diff.samples import trim
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion

_KEPT = 32
"""Maximum number of diffs of tables that a worker keeps. Two versions of a table never change."""


@dataclass(frozen=True)
class DiffTablesActivity:
    """The activity `diff_tables`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the query runner. Cancelling the activity ends the
    comparison.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    queries: QueryRunner
    max_tables: int = 50
    """Maximum number of tables that one diff compares."""
    seconds: int = 200
    """Maximum duration of the comparison of all tables, in seconds. Less than the time-out of the activity."""
    _known: dict[object, TableDiffResult] = field(default_factory=dict)

    @activity.defn(name="diff_tables")
    async def diff_tables(self, input: DiffTablesInput) -> DiffTablesResult:
        """Return the rows that differ, table by table."""
        deadline = time.monotonic() + self.seconds
        states = await asyncio.to_thread(find_diffed_states, self.catalog, input)
        diffs = await asyncio.to_thread(self._differing_tables, states, input.table)
        chosen = diffs[: self.max_tables]
        keys = await asyncio.to_thread(self._keys, input, chosen)
        tables = await asyncio.to_thread(self._open, chosen)
        check_chosen_key(input.key, {each.name: each.column_names for each in tables})
        compared = [await self._compare(each, _key_of(each, input, keys), input.rows, deadline) for each in tables]
        result = DiffTablesResult(
            before=states.before,
            after=states.after,
            tables=trim(compared),
            moved=await asyncio.to_thread(self._moved, states, [each.name for each in chosen]),
            left_out=[each.name for each in diffs[self.max_tables :]],
        )
        check_result_size(len(result.model_dump_json().encode()), "compare one table with --table, or fewer --rows")
        return result

    def _differing_tables(self, states: DiffedStates, table: str) -> list[TableDiff]:
        """Return the tables that differ, or only the one that a person chose.

        Raises:
            InvalidInput: the chosen table does not differ.
        """
        diffs = self.catalog.diff(states.before.hash, states.after.branch, states.after.hash)
        diffs = sorted((each for each in diffs if each.before or each.after), key=lambda diff: diff.name)
        names = [each.name for each in diffs]
        if not table:
            return diffs
        if table not in names:
            hint = suggestion(table, names) or (f"; {', '.join(names[:20])} do" if names else "")
            raise InvalidInput(f"the table {table[:200]!r} does not differ between the two states{hint}")
        return [each for each in diffs if each.name == table]

    def _keys(self, input: DiffTablesInput, diffs: Sequence[TableDiff]) -> dict[str, TableKey]:
        unknown = [each.name for each in diffs if each.name not in input.known_keys]
        recorded = recorded_keys(self.catalog, unknown) if unknown and not input.key else {}
        return {**recorded, **input.known_keys}

    def _open(self, diffs: Sequence[TableDiff]) -> list[DiffedTable]:
        return [DiffedTable(each, self._differing_files(each), self.queries) for each in diffs]

    def _differing_files(self, diff: TableDiff) -> DifferingFiles:
        try:
            return find_differing_files(diff.before, diff.after, self.io)
        except FileNotFoundError as error:
            nothing = VersionFiles(None)
            return DifferingFiles(nothing, nothing, f"a file of an earlier state was deleted: {error}"[:500])

    async def _compare(self, table: DiffedTable, key: TableKey, rows: int, deadline: float) -> TableDiffResult:
        """Return the diff of a table, from the known ones if it is there."""
        asked = (table.versions, tuple(key.columns), key.source, rows)
        if asked in self._known:
            return self._known[asked]
        result = await table.compare(key, rows, seconds=int(deadline - time.monotonic()))
        if not result.problem:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[asked] = result
        return result

    def _moved(self, states: DiffedStates, tables: Sequence[str]) -> list[str]:
        return tables_changed_since(self.catalog, tables, states.before.hash) if states.is_branch else []


def _key_of(table: DiffedTable, input: DiffTablesInput, keys: Mapping[str, TableKey]) -> TableKey:
    """Return the key that a person chose if the table has its columns, or else the one that is known."""
    if input.key and set(input.key) <= set(table.column_names):
        return TableKey(columns=input.key, source="chosen")
    return keys.get(table.name, TableKey())
