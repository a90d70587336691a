"""Convert a scan group for a Spark job: views by table name and file paths, and queries in Spark SQL."""

from sluice.audit.answers import check_key
from sluice.audit.scan_groups import ScanGroup, TableView
from sluice.contracts.spark_jobs import ComparedRows, ScanTarget, View


def spark_target(group: ScanGroup) -> ScanTarget:
    """Return the views and queries of a group for a Spark job."""
    return ScanTarget(
        table=group.table.name,
        types=dict(group.table.statistics.types),
        views=[_view(view) for view in group.views],
        with_other_rows=bool(group.other_files or group.carried),
        queries={check_key(group.table.name, index): query for index, query in group.queries.items()},
    )


def _view(view: TableView) -> View:
    by_name = view.is_whole_table or bool(view.main_hash)
    paths = None if by_name else [file.path for file in view.files]
    compared = None
    if view.compared:
        compared = ComparedRows(
            added=[file.path for file in view.compared.added],
            main_hash=view.compared.carried.main_hash,
            removed=list(view.compared.carried.files),
        )
    return View(name=view.name, table=view.table, main_hash=view.main_hash, paths=paths, compared=compared)
