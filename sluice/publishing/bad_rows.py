"""Row quarantine: move bad rows to `<table>__quarantine`, within the limits of the pipeline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sluice.audit.answers import check_key
from sluice.audit.engine_choice import ADDED_COLUMNS
from sluice.audit.scan_groups import ScanGroup, scan_groups
from sluice.audit.spark_target import spark_target
from sluice.audit.tables import AuditedTable
from sluice.checks.results import check_title
from sluice.checks.verdicts import CheckResult
from sluice.contracts.spark_jobs import QuarantineRowsSpec
from sluice.pipeline.table import Table
from sluice.publishing.quarantine_tables import quarantine_table
from sluice.sizes import format_count
from sluice.sql.dialect import DUCKDB, SPARK

_NAMED = 5
"""Maximum number of checks named in a sentence."""
_MOST_BYTES = 64 * 2**20
"""Maximum size of a data file that a worker rewrites itself, in bytes: it holds all rows of one file in memory."""


@dataclass(frozen=True)
class BadRow:
    """A row that breaks checks, by its position in its data file."""

    file: str
    position: int
    checks: list[str]
    """Titles of the checks."""


def with_quarantine_tables(tables: Mapping[str, Table]) -> list[str]:
    """Return the tables that a run may change: those of its pipeline, and their quarantine tables."""
    quarantines = [quarantine_table(name) for name, table in tables.items() if table.on_bad_rows == "quarantine"]
    return [*tables, *(name for name in quarantines if name not in tables)]


def quarantinable_checks(results: Sequence[CheckResult], tables: Mapping[str, Table]) -> dict[str, list[int]]:
    """Return the failed checks whose bad rows can be quarantined, by table; empty if other verdicts block too.

    Every blocking verdict must be the failure of a row check of scope `added`, in a table with
    `on_bad_rows: quarantine`.
    """
    failed: dict[str, list[int]] = {}
    for result in results:
        if not result.blocks:
            continue
        table = tables[result.table]
        check = table.checks[result.index] if result.index >= 0 else None
        if result.verdict == "error" or check is None or table.on_bad_rows != "quarantine":
            return {}
        if not check.row_level or check.scope != "added":
            return {}
        failed.setdefault(result.table, []).append(result.index)
    return failed


def bad_row_limit(table: Table, added_rows: int) -> int:
    """Return the maximum number of added rows that may be quarantined."""
    limits = []
    if table.max_bad_rows is not None:
        limits.append(table.max_bad_rows)
    if table.max_bad_proportion is not None:
        limits.append(int(Fraction(str(table.max_bad_proportion)) * added_rows))
    return min(limits)


def bad_rows_of_table(
    table: AuditedTable,
    failed: Sequence[int],
    settings: Table,
    keys: Sequence[str] = (),
    *,
    requeued: bool = False,
    moved_before: int = 0,
) -> QuarantineRowsSpec.BadRows:
    """Return the input of the Spark job that moves the rows of a table which break any of these checks.

    The job reads all added files, because every added row may break one of the checks.

    Args:
        requeued: True if the rows come from quarantine tables. Rows that are still bad go back there, without a limit.
        moved_before: the number of rows that earlier audits moved. They count towards the limit.
    """
    (group,) = scan_groups(table, {index: table.checks[index] for index in failed}, SPARK)[0]
    return QuarantineRowsSpec.BadRows(
        table=table.name,
        quarantine=quarantine_table(table.name),
        target=spark_target(group.over(table.statistics.added)),
        check_titles={check_key(table.name, index): check_title(table.checks[index]) for index in failed},
        limit=most_rows_to_move(table, settings, requeued=requeued, moved_before=moved_before),
        max_proportion=settings.max_bad_proportion if table.carried and not requeued else None,
        moved_before=0 if requeued else moved_before,
        keys=list(keys) if table.carried else [],
    )


def most_rows_to_move(table: AuditedTable, settings: Table, *, requeued: bool, moved_before: int) -> int:
    """Return the maximum number of rows of a table that may be moved, without those that were moved before."""
    added_rows = sum(file.rows for file in table.statistics.added)
    return added_rows if requeued else bad_row_limit(settings, added_rows + moved_before) - moved_before


def group_without_spark(table: AuditedTable, failed: Sequence[int]) -> ScanGroup | None:
    """Return the checks as one query of DuckDB over all added files; None if only Spark can find or move the rows.

    DuckDB finds the rows if each check has a condition for one row. The worker rewrites small files in which no row is
    deleted in place. A merge carries rows along, which only Spark can tell from those that it brought.
    """
    checks = {index: table.checks[index] for index in failed}
    groups, _ = scan_groups(table, checks, DUCKDB)
    added = [file for file in table.statistics.added if file.rows]
    if table.carried or len(groups) != 1 or len(groups[0].queries) != len(checks):
        return None
    if not all(query.bad for query in groups[0].queries.values()):
        return None
    taken = {each.name.lower() for each in table.fields} & {*ADDED_COLUMNS}
    if taken or any(file.deletes or file.bytes > _MOST_BYTES for file in added):
        return None
    return groups[0].over(added)


def count_broken_checks(rows: Sequence[BadRow]) -> dict[str, int]:
    """Return the number of rows that break each check, most first. A row may break several."""
    counts = Counter(title for row in rows for title in row.checks)
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def describe_bad_rows(bad_rows: Mapping[str, int], broken_checks: Mapping[str, Mapping[str, int]]) -> str:
    """Return a sentence with the number of quarantined rows of each table and the checks that they break."""
    parts = []
    for table, count in bad_rows.items():
        broken = [f"{title} {number:,}" for title, number in broken_checks.get(table, {}).items()]
        named = f" ({_listed(broken)})" if broken else ""
        parts.append(f"{format_count(count, 'bad row')} of {table} went to {quarantine_table(table)}{named}")
    return "; ".join(parts)


def add_bad_rows(earlier: Mapping[str, int], latest: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of two numbers of bad rows, by table or by check."""
    return {name: earlier.get(name, 0) + latest.get(name, 0) for name in {**earlier, **latest}}


def add_broken_checks(
    earlier: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Return the sums of two numbers of bad rows, by table and check."""
    return {name: add_bad_rows(earlier.get(name, {}), latest.get(name, {})) for name in {**earlier, **latest}}


def describe_above_cap(
    bad_rows: Mapping[str, int], caps: Mapping[str, int | None], moved_before: Mapping[str, int]
) -> str:
    """Return a sentence that names the tables with more bad rows than may be quarantined.

    Args:
        caps: what is left of the cap of each such table, if it is known.
        moved_before: the number of rows that were moved before, by table. The sentence includes them.
    """
    counts = []
    for table, cap in caps.items():
        before = moved_before.get(table, 0)
        allowed = f" (the pipeline allows {cap + before:,})" if cap is not None else ""
        counts.append(f"{bad_rows[table] + before:,} of {table}{allowed}")
    return f"more bad rows than the pipeline allows to quarantine: {'; '.join(counts)}"


def _listed(parts: Sequence[str]) -> str:
    more = [f"and {len(parts) - _NAMED:,} more checks"] if len(parts) > _NAMED else []
    return ", ".join([*parts[:_NAMED], *more])
