"""Leave rows out of the reports and diffs of a run, for people who may not see them."""

from sluice.contracts.run import ReportedRun
from sluice.contracts.table_diffs import DiffTablesResult, RowDifferences, TableDiffResult


def without_samples(run: ReportedRun) -> ReportedRun:
    """Return a run without the rows that broke its checks. The digest of its audit stays that of the whole report."""
    checks = [each.model_copy(update={"sample": []}) for each in run.checks]
    return run.model_copy(update={"checks": checks})


def without_rows(result: DiffTablesResult, why: str) -> DiffTablesResult:
    """Return a diff without its rows. Its numbers stay.

    Args:
        why: the reason, which becomes a note on each table with rows that differ.
    """
    return result.model_copy(update={"tables": [_table(each, why) for each in result.tables]})


def _table(table: TableDiffResult, why: str) -> TableDiffResult:
    if table.rows is None or not table.rows.total:
        return table
    return table.model_copy(update={"rows": _numbers(table.rows), "notes": [*table.notes, why]})


def _numbers(rows: RowDifferences) -> RowDifferences:
    """Return the numbers of a diff, without partitions, because their names are values of rows."""
    nothing: dict[str, object] = {"added_rows": [], "removed_rows": [], "changed_rows": [], "partitions": []}
    return rows.model_copy(update={**nothing, "more_partitions": rows.more_partitions + len(rows.partitions)})
