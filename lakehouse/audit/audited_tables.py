"""Load the tables of an audit, and the tables that its checks reference, with their statistics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.statistics import collect_statistics, file_statistics, schema_fields
from lakehouse.iceberg.table_state import TableState
from sluice.audit.engine_choice import field_id_problem
from sluice.audit.tables import AuditedTable, CarriedRows, ReferencedTable, referenced_tables
from sluice.checks.base import Check, TableReference
from sluice.contracts.audit import AuditInput
from sluice.metadata.statistics import StatisticsNeed


@dataclass(frozen=True)
class AuditedTables:
    """Loader of audited tables.

    Requires the catalog, and Iceberg's properties for file access.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]

    def load(self, input: AuditInput) -> Iterator[tuple[str, AuditedTable | None]]:
        """Load each table of an audit. The table is None if it is not on the branch."""
        checks = [check for table in input.tables.values() for check in table.checks]
        changed = self._changed_tables(input) if any(each.check == "changed_tables" for each in checks) else []
        now = datetime.fromisoformat(input.now) if input.now else datetime.now(timezone.utc)
        for name, table in input.tables.items():
            state = self.state(input, name)
            if state is None:
                yield name, None
                continue
            referenced = [self._referenced(input, each) for each in referenced_tables(table.checks)]
            present = {each.reference.key: each for each in referenced if each}
            audited = audited_table(name, table.checks, state, present, changed_tables=changed, now=now)
            audited = replace(audited, statistics=replace(audited.statistics, requeued=input.requeued))
            compares = input.keys and table.on_bad_rows == "quarantine"
            yield name, replace(audited, carried=_carried_rows(state, input.base)) if compares else audited

    def state(self, input: AuditInput, name: str) -> TableState | None:
        """Load a table at the audited hash; None if it is not on the branch."""
        after = self.catalog.table_version(input.branch, name, input.head)
        before = self.catalog.table_version(self.catalog.main, name, input.base)
        return TableState.load(after, before, self.io) if after else None

    def _referenced(self, input: AuditInput, reference: TableReference) -> ReferencedTable | None:
        on_main = reference.ref == "main"
        ref, at = (self.catalog.main, input.base) if on_main else (input.branch, input.head)
        version = self.catalog.table_version(ref, reference.table, at)
        if version is None:
            return None
        return referenced_table(reference, TableState.load(version, None, self.io), input.base if on_main else "")

    def _changed_tables(self, input: AuditInput) -> list[str]:
        return [diff.name for diff in self.catalog.diff(input.base, input.branch, input.head)]


def _carried_rows(state: TableState, base: str) -> CarriedRows | None:
    if state.live.removes_nothing:
        return None  # the run neither removed nor changed an existing row
    return CarriedRows(base, [entry.data_file.file_path for entry in state.live.removed])


def audited_table(
    name: str,
    checks: Sequence[Check],
    state: TableState,
    referenced: Mapping[str, ReferencedTable],
    *,
    changed_tables: Sequence[str] = (),
    now: datetime | None = None,
) -> AuditedTable:
    """Return a table with the statistics that its checks need."""
    statistics = collect_statistics(
        state,
        {column for check in checks for column in check.column_names},
        needed_statistics(checks),
        tables=changed_tables,
        referenced_rows={key: each.rows for key, each in referenced.items()},
        now=now,
    )
    return AuditedTable(
        name=name,
        checks=checks,
        statistics=statistics,
        fields=schema_fields(state.table.schema()),
        is_new=state.before is None,
        field_id_problem=_field_id_problem(state),
        referenced=referenced,
    )


def referenced_table(reference: TableReference, state: TableState, main_hash: str = "") -> ReferencedTable:
    """Return a referenced table with the statistics of the columns that checks read."""
    return ReferencedTable(
        reference=reference,
        fields=schema_fields(state.table.schema()),
        files=file_statistics(state, reference.columns),
        main_hash=main_hash,
        field_id_problem=_field_id_problem(state),
    )


def _field_id_problem(state: TableState) -> str | None:
    return field_id_problem(state.table.properties, has_defaults=state.has_column_defaults)


def needed_statistics(checks: Sequence[Check]) -> set[StatisticsNeed]:
    """Return the statistics that checks need. A check of scope `table` needs every live file."""
    live = {StatisticsNeed.LIVE_FILES} if any(check.scope == "table" for check in checks) else set()
    return live | {need for check in checks for need in check.needs}
