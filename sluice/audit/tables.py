"""Tables of an audit: their checks, statistics and schemas, and the other tables that checks reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluice.checks.base import Check, TableReference, check_problems
from sluice.identifiers import suggestion
from sluice.metadata.statistics import FileStatistics, SchemaField, TableStatistics


@dataclass(frozen=True)
class ReferencedTable:
    """Another table that checks read, with the statistics of the columns that they use."""

    reference: TableReference
    fields: Sequence[SchemaField]
    files: Sequence[FileStatistics]
    main_hash: str = ""
    """The hash of main at which it is read; empty for the audited hash of the branch."""
    field_id_problem: str | None = None
    """The reason why its data files cannot be read by field id alone, if any."""

    @property
    def types(self) -> dict[str, str]:
        """The Iceberg type of each of its columns."""
        return {each.name: each.type for each in self.fields}

    @property
    def rows(self) -> int | None:
        """The number of its rows, or None under row-level deletes."""
        return None if any(file.deletes for file in self.files) else sum(file.rows for file in self.files)


@dataclass(frozen=True)
class CarriedRows:
    """The removed files with the rows that a merge copied unchanged into the files that it added.

    A merge that marks rows as deleted instead of copying the others removes no file and carries no rows.
    """

    main_hash: str
    """The hash of main at which these files are live."""
    files: Sequence[str]
    """Paths of the files."""


@dataclass(frozen=True)
class AuditedTable:
    """One table of an audit at the audited hash, compared with the base of the branch."""

    name: str
    checks: Sequence[Check]
    statistics: TableStatistics
    fields: Sequence[SchemaField] = ()
    """The columns, with the ids by which data files store them."""
    is_new: bool = False
    """True if the table does not exist at the base."""
    field_id_problem: str | None = None
    """The reason why its data files cannot be read by field id alone, if any."""
    referenced: Mapping[str, ReferencedTable] = field(default_factory=dict)
    """The referenced tables that exist, by `TableReference.key`."""
    carried: CarriedRows | None = None
    """If set, rows that the run carried along unchanged are not `added`. Only a comparison of rows identifies them."""

    def problem(self, check: Check) -> str | None:
        """Return the reason why a check cannot be applied to this table, or None."""
        problems = check_problems(check, self.statistics.types)
        if problems:
            return f"{self.name}: {'; '.join(problems)}"
        if (problem := check.statistics_problem(self.statistics)) is not None:
            return f"{self.name}: {problem}"
        reference = check.reference
        if reference is None:
            return None
        table = self.referenced.get(reference.key)
        if table is None:
            return f"there is no table {reference.table} on {'main' if reference.ref == 'main' else 'the branch'}"
        missing = [name for name in reference.columns if name not in table.types]
        if missing:
            return f"{reference.table} has no column {missing[0]!r}{suggestion(missing[0], list(table.types))}"
        return None


def referenced_tables(checks: Sequence[Check]) -> list[TableReference]:
    """Return the other tables that checks reference, each once, with all columns that any check reads."""
    references: dict[str, TableReference] = {}
    for check in checks:
        if (reference := check.reference) is not None:
            known = references.get(reference.key, reference)
            columns = list(dict.fromkeys([*known.columns, *reference.columns]))
            references[reference.key] = reference.model_copy(update={"columns": columns})
    return list(references.values())
