"""A table on the branch of the warm session, audited by metadata, by DuckDB and by Spark side by side."""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from activities.audit_tables import AuditedTable, OtherTable, needs_of
from activities.scan_branch import target
from activities.scan_branch import verdicts as spark_verdicts
from activities.scan_files import answered, unreadable
from engine.duckdb_scan import DuckDBScan
from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.statistics import collect_statistics
from lakehouse.iceberg.table_state import TableState
from sluice.audit.planner import decide, referenced_tables, scan_groups
from sluice.audit.verdicts import AnswerSource, CheckResult, check_result
from sluice.checks import REGISTRY, expand
from sluice.checks.base import Check
from sluice.contracts.spark_jobs import ScanSpec
from sluice.settings import Settings
from sluice.sql.dialect import SPARK
from spark_jobs.scan import scan_all
from tests.component.conftest import BRANCH

NOW = datetime(2024, 3, 1, tzinfo=timezone.utc)


def check_of(written: Any) -> Check:
    """Return the one check that a person wrote."""
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate(fields)


class Table:
    """A table with rows of an earlier run and rows of this one, and the questions about them."""

    def __init__(self, spark: SparkSession, catalog: BranchCatalog, name: str, scratch: Path) -> None:
        self.spark, self.catalog, self.name, self.scratch = spark, catalog, name, scratch
        self.base: TableVersion | None = None

    def fill(self, columns: str, before: Sequence[str], added: Sequence[str], more: str = "") -> None:
        """Make the table, with rows written as SQL values: `before` by an earlier run, `added` by this one."""
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) {more}")
        self.insert(before)
        self.mark()
        self.insert(added)

    def insert(self, rows: Sequence[str]) -> None:
        """Append rows by one commit, as one file."""
        if rows:
            self.spark.sql(f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}")

    def mark(self) -> None:
        """Let everything that is there count as written before this run."""
        self.base = self.catalog.table_version(BRANCH, self.name)

    def sql(self, statement: str) -> None:
        """Run a statement with `{t}` for this table."""
        self.spark.sql(statement.replace("{t}", self.name))

    def state(self) -> TableState:
        """Return the table as metadata has it."""
        place = self.catalog.table_version(BRANCH, self.name)
        assert place
        return TableState.load(place, self.base, {})

    def audited(self, checks: Sequence[Check]) -> AuditedTable:
        """Return the table as an audit sees it."""
        others = {}
        for other in referenced_tables(checks):
            place = self.catalog.table_version(BRANCH, other.table)
            if place:
                others[other.key] = OtherTable(other, TableState.load(place, None, {}), "")
        state = self.state()
        facts = collect_statistics(
            state,
            {column for check in checks for column in check.column_names},
            needs_of(checks),
            tables=[self.name],
            others={key: each.rows for key, each in others.items()},
            now=NOW,
        )
        return AuditedTable(self.name, checks, state, others, facts)

    def by_metadata(self, checks: Sequence[Check]) -> list[CheckResult | None]:
        """Return the verdict that metadata proves for each check, or None."""
        table = self.audited(checks)
        return [
            None
            if finding is None
            else check_result(self.name, index, checks[index], finding, AnswerSource("metadata"))
            for index, finding in decide(checks, table.facts).items()
        ]

    def by_duckdb(self, checks: Sequence[Check]) -> list[CheckResult | None]:
        """Return DuckDB's verdict on each check, or None where it must be left to Spark."""
        table = self.audited(checks)
        left = unreadable(table, dict(enumerate(checks)), Settings(sluice_home=self.scratch))
        asked = {index: check for index, check in enumerate(checks) if index not in left}
        with DuckDBScan("1GB", self.scratch) as duck:
            found = iter(answered(duck, table, asked))
            by_index = {
                index: next(found) for scope in ("added", "table") for index in asked if checks[index].scope == scope
            }
        return [by_index.get(index) for index in range(len(checks))]

    def by_spark(self, checks: Sequence[Check], insist: bool = False) -> list[CheckResult]:
        """Return Spark's verdict on each check."""
        table = self.audited(checks)
        found = scan_groups(dict(enumerate(checks)), table.facts, SPARK)[0]
        spec = ScanSpec(
            spark_catalog="nessie",
            targets=[target(table, reading) for reading in found],
            sample_rows=5,
            insist=insist,
            answer="",
        )
        answers = scan_all(self.spark, spec).scans
        by_index = {
            index: verdict
            for reading in found
            for index, verdict in zip(reading.checks, spark_verdicts(table, reading, answers), strict=True)
        }
        return [by_index[index] for index in range(len(checks))]
