"""Audit of a table on the branch of the warm session by metadata, by DuckDB and by Spark."""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engine.duckdb_scan import DuckDBScan, scan_group
from engine.duckdb_session import DuckDBSession
from lakehouse.audit.audited_tables import audited_table, referenced_table
from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.table_state import TableState
from sluice.audit.answers import verdicts
from sluice.audit.planner import prove_checks
from sluice.audit.scan_groups import scan_groups
from sluice.audit.spark_target import spark_target
from sluice.audit.tables import AuditedTable, referenced_tables
from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY, expand
from sluice.checks.results import AnswerSource, check_result
from sluice.checks.verdicts import CheckResult
from sluice.contracts.spark_jobs import ScanSpec
from sluice.settings import Settings
from sluice.sql.dialect import DUCKDB, SPARK
from spark_jobs.scan import scan_all
from tests.harness.folder_store import IO, FolderStoreSession
from tests.harness.warm_branch import BRANCH

NOW = datetime(2024, 3, 1, tzinfo=timezone.utc)


def check_of(written: Any) -> Check:
    """Return the one check that a definition expands to."""
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate(fields)


class Table:
    """A table with rows of an earlier run and rows of this run, and its audit by each engine."""

    def __init__(self, spark: SparkSession, catalog: BranchCatalog, name: str, scratch: Path) -> None:
        self.spark, self.catalog, self.name, self.scratch = spark, catalog, name, scratch
        self.base: TableVersion | None = None

    def fill(self, columns: str, before: Sequence[str], added: Sequence[str], more: str = "") -> None:
        """Create the table and insert rows written as SQL values: `before` by an earlier run, `added` by this one."""
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) {more}")
        self.insert(before)
        self.mark()
        self.insert(added)

    def insert(self, rows: Sequence[str]) -> None:
        """Append rows in one commit and one file."""
        if rows:
            self.spark.sql(f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}")

    def mark(self) -> None:
        """Count all present rows as written before this run."""
        self.base = self.catalog.table_version(BRANCH, self.name)

    def sql(self, statement: str) -> None:
        """Run a statement with `{t}` for this table."""
        self.spark.sql(statement.replace("{t}", self.name))

    def state(self) -> TableState:
        """Return the table's state as read from its metadata."""
        version = self.catalog.table_version(BRANCH, self.name)
        assert version
        return TableState.load(version, self.base, {})

    def audited(self, checks: Sequence[Check]) -> AuditedTable:
        """Return the table as the audit reads it."""
        referenced = {}
        for reference in referenced_tables(checks):
            version = self.catalog.table_version(BRANCH, reference.table)
            if version:
                referenced[reference.key] = referenced_table(reference, TableState.load(version, None, {}))
        return audited_table(self.name, checks, self.state(), referenced, changed_tables=[self.name], now=NOW)

    def by_metadata(self, checks: Sequence[Check]) -> list[CheckResult | None]:
        """Return the verdict that metadata proves for each check, or None if it proves none."""
        return [
            None if result is None else check_result(self.name, index, checks[index], result, AnswerSource("metadata"))
            for index, result in prove_checks(checks, self.audited(checks).statistics).items()
        ]

    def by_duckdb(self, checks: Sequence[Check]) -> list[CheckResult | None]:
        """Return DuckDB's verdict on each check, or None for a check that only Spark may answer.

        Assert that local data files and data files in a store give the same verdicts.
        """
        local, in_store = DuckDBSession("1GB", self.scratch), FolderStoreSession("1GB", self.scratch, io=IO)
        answered = self._answered(checks, local)
        assert self._answered(checks, in_store) == answered
        return answered

    def _answered(self, checks: Sequence[Check], database: DuckDBSession) -> list[CheckResult | None]:
        table, every = self.audited(checks), dict(enumerate(checks))
        refused = DuckDBScan(Settings.of(sluice_home=self.scratch).scan).refusals(table, every)
        accepted = {index: check for index, check in every.items() if index not in refused}
        with database as session:
            by_index = {
                verdict.index: verdict
                for group in scan_groups(table, accepted, DUCKDB)[0]
                for verdict in verdicts(group, scan_group(session, group), "duckdb")
            }
        assert by_index.keys() == accepted.keys()
        return [by_index.get(index) for index in every]

    def by_spark(self, checks: Sequence[Check], last_attempt: bool = False) -> list[CheckResult]:
        """Return Spark's verdict on each check."""
        table = self.audited(checks)
        groups = scan_groups(table, dict(enumerate(checks)), SPARK)[0]
        spec = ScanSpec(
            spark_catalog="nessie",
            targets=[spark_target(group) for group in groups],
            sample_rows=5,
            last_attempt=last_attempt,
            answer="",
        )
        answers = scan_all(self.spark, spec).scans
        by_index = {verdict.index: verdict for group in groups for verdict in verdicts(group, answers, "spark")}
        return [by_index[index] for index in range(len(checks))]


def seen(result: CheckResult) -> tuple[Any, ...]:
    assert not result.message, result.message
    return result.verdict, result.observed
