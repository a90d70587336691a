"""Scan groups: checks that one scan answers together, with their queries, files and views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sluice.audit.files import all_other_live_files, disjoint_groups, referenced_files, undecided_files
from sluice.audit.tables import AuditedTable, CarriedRows
from sluice.checks.base import OTHER_ROWS, ROWS, Check, CheckQuery
from sluice.metadata.statistics import FileStatistics, SchemaField, Scope
from sluice.sql.dialect import Dialect, NeedsSpark


@dataclass(frozen=True)
class TableView:
    """Rows of a table, under the view name that a query reads."""

    name: str
    table: str
    fields: Sequence[SchemaField]
    files: Sequence[FileStatistics]
    columns: Sequence[str] = ()
    """Columns that are read; empty means all."""
    is_whole_table: bool = False
    """True if these are all files of the table, so that an engine with a catalog may read the table by its name."""
    main_hash: str = ""
    """The hash of main at which the table is read; empty for the audited hash of the branch."""
    compared: "ComparedFiles | None" = None
    """If set, a comparison separates the added rows from those that a merge carried along."""


@dataclass(frozen=True)
class ComparedFiles:
    """Added files whose rows are compared with those of main, so that unchanged rows do not count as added."""

    added: Sequence[FileStatistics]
    carried: CarriedRows


@dataclass(frozen=True)
class ScanGroup:
    """The checks of one table and scope that one scan answers together."""

    table: AuditedTable
    scope: Scope
    checks: Mapping[int, Check]
    """Checks by their index in the pipeline file."""
    queries: Mapping[int, CheckQuery]
    files: Sequence[FileStatistics]
    """The files that metadata leaves undecided for any of the checks."""

    def over(self, files: Sequence[FileStatistics]) -> "ScanGroup":
        """Return the same checks and queries over other files."""
        return replace(self, files=[file for file in files if file.rows])

    @property
    def carried(self) -> CarriedRows | None:
        """The rows that were carried along unchanged. The rows in scope exclude them. None if there are none."""
        return self.table.carried if self.scope == "added" else None

    @property
    def other_files(self) -> list[FileStatistics]:
        """The other live files of the table that any of the queries must read."""
        return all_other_live_files(self.table, self.queries.values(), self.files)

    def files_beside(self, index: int) -> list[FileStatistics]:
        """Return the files that one check reads in addition to the rows in scope."""
        query = self.queries[index]
        if query.reference:
            referenced = self.table.referenced[query.reference.key]
            return referenced_files(self.table, referenced, self.queries.values(), self.files)
        return all_other_live_files(self.table, [query], self.files)

    def bytes_of(self, index: int) -> int:
        """Return the size of a check's columns in the files, in bytes."""
        total = 0
        for file in self.files:
            sizes = [file.column(name).size for name in self.queries[index].columns]
            total += file.bytes if any(size is None for size in sizes) else sum(size or 0 for size in sizes)
        return total

    @property
    def views(self) -> list[TableView]:
        """The views that the queries read: the rows in scope, other live rows, and referenced tables."""
        table, other_files = self.table, self.other_files
        in_scope = [file for file in table.statistics.files(self.scope) if file.rows]
        is_whole_table = (self.scope == "table" or table.is_new) and len(self.files) == len(in_scope)
        compared = ComparedFiles(self.files, self.carried) if self.carried else None
        is_whole_table = is_whole_table and compared is None
        rows = TableView(ROWS, table.name, table.fields, self.files, is_whole_table=is_whole_table, compared=compared)
        views = [rows]
        if other_files or compared:
            views.append(TableView(OTHER_ROWS, table.name, table.fields, other_files, compared=compared))
        keys = {query.reference.key for query in self.queries.values() if query.reference}
        return [*views, *(self._referenced_view(key) for key in sorted(keys))]

    def _referenced_view(self, key: str) -> TableView:
        referenced = self.table.referenced[key]
        files = referenced_files(self.table, referenced, self.queries.values(), self.files)
        return TableView(
            name=referenced.reference.view,
            table=referenced.reference.table,
            fields=referenced.fields,
            files=files,
            columns=referenced.reference.columns,
            is_whole_table=len(files) >= len(referenced.files),
            main_hash=referenced.main_hash,
        )

    @property
    def disjoint_views(self) -> dict[int, list[TableView]]:
        """Views by check that split the rows in scope so that no key occurs in two of them; empty if impossible."""
        if self.other_files:
            return {}
        views = {}
        for index, query in self.queries.items():
            if not query.groups_with_other_rows or not query.key or query.nulls_match:
                continue
            groups = disjoint_groups(self.files, query.key, self.table.statistics.types[query.key])
            if len(groups) > 1:
                views[index] = [
                    TableView(f"{ROWS}_{index}_{number}", self.table.name, self.table.fields, files, query.columns)
                    for number, files in enumerate(groups)
                ]
        return views


def scan_groups(
    table: AuditedTable, checks: Mapping[int, Check], sql: Dialect
) -> tuple[list[ScanGroup], dict[int, str]]:
    """Group undecided checks by scope, and return the reasons why others cannot be expressed in this dialect."""
    groups: list[ScanGroup] = []
    inexpressible: dict[int, str] = {}
    scopes: tuple[Scope, ...] = ("added", "table")
    for scope in scopes:
        queries: dict[int, CheckQuery] = {}
        for index, check in checks.items():
            if check.scope != scope:
                continue
            try:
                queries[index] = check.build_query(sql, table.statistics.types)
            except NeedsSpark as reason:
                inexpressible[index] = str(reason)
        if queries:
            grouped = {index: checks[index] for index in queries}
            files = undecided_files(list(grouped.values()), table.statistics, scope)
            if table.carried and scope == "added":
                files = [file for file in table.statistics.files(scope) if file.rows]
            groups.append(ScanGroup(table, scope, grouped, queries, files))
    return groups, inexpressible
