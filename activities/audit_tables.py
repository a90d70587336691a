"""A table as an audit sees it: its facts, the tables beside it, and what it takes to answer from its rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.statistics import collect_statistics, file_statistics
from lakehouse.iceberg.table_state import TableState
from sluice.audit.planner import overlapping, referenced_tables
from sluice.audit.statistics import FileStatistics, SchemaField, TableStatistics
from sluice.checks.base import Check, CheckQuery, Other, misfits
from sluice.contracts.activity_inputs import AuditInput
from sluice.identifiers import suggestion
from sluice.sql.values import FLOATS, kind_of


@dataclass(frozen=True)
class OtherTable:
    """Another table that checks look at, where it is there."""

    other: Other
    state: TableState
    at: str
    """The hash of main that it is read at; empty for the audited hash of the branch."""

    @cached_property
    def files(self) -> list[FileStatistics]:
        """Its live data files, with what is recorded of the columns that are asked of it."""
        return file_statistics(self.state, self.other.columns)

    @property
    def rows(self) -> int | None:
        """How many rows it has, or None where row-level deletes hide it."""
        return None if any(file.deletes for file in self.files) else sum(file.rows for file in self.files)


@dataclass(frozen=True)
class AuditedTable:
    """One table of an audit, at the audited hash, beside what it was at the base."""

    name: str
    checks: Sequence[Check]
    state: TableState
    others: Mapping[str, OtherTable]
    facts: TableStatistics

    @property
    def fields(self) -> list[SchemaField]:
        """The columns of the table, with the ids by which files are read."""
        return fields_of(self.state)

    def problem(self, check: Check) -> str | None:
        """Return why a check cannot be asked of this table, or None."""
        problems = misfits(check, self.facts.types)
        if problems:
            return f"{self.name}: {'; '.join(problems)}"
        if check.other is None:
            return None
        other = self.others.get(check.other.key)
        if other is None:
            return f"there is no table {check.other.table} on {'main' if check.other.ref == 'main' else 'the branch'}"
        missing = [name for name in check.other.columns if name not in other.state.types]
        if missing:
            return f"{check.other.table} has no column {missing[0]!r}{suggestion(missing[0], other.state.types)}"
        return None

    def rest(self, question: CheckQuery, files: Sequence[FileStatistics]) -> list[FileStatistics]:
        """Return the live files beside the added ones that hold keys which the added ones may hold too."""
        added = {file.path for file in self.facts.added}
        rest = [file for file in self.facts.live if file.path not in added and file.rows]
        key = question.key
        if key is None or kind_of(self.facts.types[key]) in FLOATS:
            return rest  # a NaN equals another, and lies in no bounds
        if question.null_keys and any(file.column(key).nulls != 0 for file in files):
            return rest
        return overlapping(rest, key, files, key)

    def rest_of(self, questions: Iterable[CheckQuery], files: Sequence[FileStatistics]) -> list[FileStatistics]:
        """Return the rest that any of these questions must look at, each file once."""
        asked = [question for question in questions if question.groups_with_rest]
        return list({file.path: file for question in asked for file in self.rest(question, files)}.values())

    def files_of(
        self, other: OtherTable, questions: Sequence[CheckQuery], files: Sequence[FileStatistics]
    ) -> list[FileStatistics]:
        """Return the files of another table that hold keys which these files may hold too."""
        asked = [question for question in questions if question.other and question.other.key == other.other.key]
        if len(asked) != 1 or not asked[0].key or kind_of(self.facts.types[asked[0].key]) in FLOATS:
            return [file for file in other.files if file.rows]
        assert asked[0].other
        return overlapping(other.files, asked[0].other.columns[0], files, asked[0].key)


def load_audited_tables(
    catalog: BranchCatalog, input: AuditInput, io: Mapping[str, str]
) -> Iterator[tuple[str, AuditedTable | None]]:
    """Load each table of an audit; None where it is not on the branch."""
    wants_tables = any(check.check == "changed_tables" for table in input.tables.values() for check in table.checks)
    changed = _changed(catalog, input) if wants_tables else []
    for name, table in input.tables.items():
        state = load(catalog, input, name, io)
        if state is None:
            yield name, None
            continue
        checks = table.checks
        found = {other.key: _other(catalog, input, other, io) for other in referenced_tables(checks)}
        others = {key: each for key, each in found.items() if each is not None}
        facts = collect_statistics(
            state,
            {column for check in checks for column in check.column_names},
            needs_of(checks),
            tables=changed,
            others={key: each.rows for key, each in others.items()},
            now=datetime.fromisoformat(input.now) if input.now else datetime.now(timezone.utc),
        )
        yield name, AuditedTable(name, checks, state, others, facts)


def needs_of(checks: Sequence[Check]) -> set[str]:
    """Return what checks need to know beyond files and types; a scope of the whole table needs every live file."""
    live = {"live"} if any(check.scope == "table" for check in checks) else set()
    return live | {need for check in checks for need in check.needs}


def load(catalog: BranchCatalog, input: AuditInput, name: str, io: Mapping[str, str]) -> TableState | None:
    """Load one table of the branch at the audited hash, beside what it was at the base; None if it is not there."""
    after = catalog.table_version(input.branch, name, input.head)
    before = catalog.table_version(catalog.main, name, input.base)
    return TableState.load(after, before, io) if after else None


def fields_of(state: TableState) -> list[SchemaField]:
    """Return the columns of a table by their ids."""
    schema = state.table.schema()
    return [SchemaField(each.field_id, each.name, str(each.field_type), each.required) for each in schema.fields]


def _other(catalog: BranchCatalog, input: AuditInput, other: Other, io: Mapping[str, str]) -> OtherTable | None:
    at_main = other.ref == "main"
    ref, at = (catalog.main, input.base) if at_main else (input.branch, input.head)
    version = catalog.table_version(ref, other.table, at)
    return OtherTable(other, TableState.load(version, None, io), input.base if at_main else "") if version else None


def _changed(catalog: BranchCatalog, input: AuditInput) -> list[str]:
    return [diff.name for diff in catalog.diff(input.base, input.branch, input.head)]
