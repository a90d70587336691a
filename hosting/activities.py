"""The activities that workers host, by task queue."""

from temporalio.client import Client

from activities.audit.scan_branch import ScanBranchActivity
from activities.audit.scan_tables import TableScanner
from activities.installation.examine_spark import ExamineSparkActivity
from activities.notifications.notifier import RoutedNotifier
from activities.quarantine.quarantine_rows import QuarantineRowsActivity
from activities.run.write_table import WriteTableActivity
from engine.runner import Spark
from engine.scan_engines import duckdb_scan
from engine.spark.engine import Engine
from engine.spark_scan import SparkScan
from hosting.questions import question_activities
from hosting.registrations import registration_activities
from hosting.runs import audit_activities, branch_activities
from hosting.shared import Activity, Shared
from hosting.starts import arrival_activities, start_activities
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from lakehouse.catalog import BranchCatalog
from lakehouse.input.manifests import InputManifests
from sluice.registration.targets import Targets
from sluice.settings import Settings


def control_activities(
    client: Client,
    settings: Settings,
    catalog: BranchCatalog,
    io: dict[str, str],
    reports: ReportStore,
    notifier: RoutedNotifier,
    targets: Targets,
) -> list[Activity]:
    """Return the activities without Spark: on the catalog, on data files with DuckDB, and notifications."""
    shared = Shared(client, settings, catalog, io, reports, notifier, targets)
    return [
        *branch_activities(shared),
        *audit_activities(shared),
        *registration_activities(shared),
        *start_activities(shared),
        *arrival_activities(shared),
        *question_activities(shared),
    ]


def spark_activities(
    settings: Settings, engine: Engine, catalog: BranchCatalog, io: dict[str, str], reports: ReportStore
) -> list[Activity]:
    """Return the activities that run Spark."""
    spark, tables = Spark(settings.spark_jobs, engine), AuditedTables(catalog, io)
    scanner = TableScanner(tables, reports, settings.storage)
    return [
        WriteTableActivity(catalog, spark, InputManifests(settings.storage.lake, io)).write_table,
        ScanBranchActivity(scanner, SparkScan(spark, catalog)).scan_branch,
        QuarantineRowsActivity(tables, spark, duckdb_scan(settings.scan, io)).quarantine_rows,
        ExamineSparkActivity(settings.spark_jobs).examine_spark,
    ]
