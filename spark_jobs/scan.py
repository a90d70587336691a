"""The built-in audit job: answer every undecided check of a run from the rows, in one pass over each table.

    spark-submit scan.py SPEC

The session's catalogue is pinned to the audited hash, so the job can only read.
"""

import math
import sys
from functools import reduce
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.checks.base import Scan
from sluice.jobs import JobAnswer, ScanAnswer, ScanSpec, ScanTarget
from sluice.names import quoted, quoted_table
from spark_jobs.harness import explained, reason, run_job, say

_ROWS = "rows"
_MINE = "__sluice_added"
_SAMPLE_COLUMNS = 12


def scan_all(spark: SparkSession, spec: ScanSpec) -> JobAnswer:
    """Answer every question of the spec."""
    answers: dict[str, ScanAnswer] = {}
    for target in spec.targets:
        say(f"auditing {target.table}")
        answers.update(_Target(spark, spec, target).answers())
    return JobAnswer(scans=answers)


class _Target:
    """The questions about one table and scope."""

    def __init__(self, spark: SparkSession, spec: ScanSpec, target: ScanTarget) -> None:
        self._spark = spark
        self._target = target
        self._limit = spec.sample_rows
        self._insist = spec.insist
        self._table = quoted_table(target.table, spec.catalogue)

    def answers(self) -> dict[str, ScanAnswer]:
        fused = {key: scan for key, scan in self._target.scans.items() if not scan.keys and not scan.query}
        found = self._fused(fused) if fused else {}
        for key, scan in self._target.scans.items():
            if key not in found:
                found[key] = self._guarded(self._alone, scan)
        return found

    def _fused(self, scans: dict[str, Scan]) -> dict[str, ScanAnswer]:
        """Ask everything that one aggregation can answer in one pass; if it fails, each question by itself."""
        try:
            numbers = self._aggregated(scans)
        except (PySparkException, Py4JJavaError) as error:
            if len(scans) == 1:
                return {next(iter(scans)): self._unanswered(error)}
            return {key: self._fused({key: scan})[key] for key, scan in scans.items()}
        return {
            key: self._guarded(lambda scan, key=key: self._with_sample(scan, numbers[key]), scan)
            for key, scan in scans.items()
        }

    def _aggregated(self, scans: dict[str, Scan]) -> dict[str, dict[str, Any]]:
        expressions = [F.count(F.lit(1)).alias(_ROWS)]
        for key, scan in scans.items():
            if scan.bad_rows:
                expressions.append(F.expr(f"count_if({scan.bad_rows})").alias(f"{key}/failed"))
            expressions += [F.expr(sql).alias(f"{key}/{name}") for name, sql in scan.aggregates.items()]
        row = self._in_scope().agg(*expressions).collect()[0].asDict()
        return {
            key: {
                _ROWS: row[_ROWS],
                **{name.split("/", 1)[1]: value for name, value in row.items() if name.startswith(f"{key}/")},
            }
            for key in scans
        }

    def _with_sample(self, scan: Scan, numbers: dict[str, Any]) -> ScanAnswer:
        if not scan.bad_rows or not numbers["failed"]:
            return ScanAnswer(numbers=numbers)
        return ScanAnswer(numbers=numbers, sample=self._sample(self._in_scope().filter(scan.bad_rows), scan.show))

    def _alone(self, scan: Scan) -> ScanAnswer:
        bad = self._spark.sql(f"SELECT * FROM ({scan.query}\n)") if scan.query else self._repeated(scan)
        counted = bad.count() if scan.query else (bad.agg(F.sum("rows")).collect()[0][0] or 0)
        return ScanAnswer(numbers={"failed": counted}, sample=self._sample(bad, []) if counted else [])

    def _repeated(self, scan: Scan) -> DataFrame:
        """Return the keys that occur more than once, each with its number of rows in scope."""
        rows = self._spark.table(self._table)
        if not self._target.whole_table:
            rows = rows.withColumn(_MINE, self._is_added(rows))
        else:
            rows = rows.withColumn(_MINE, F.lit(True))
        keys = [F.col(quoted(key)) for key in scan.keys]
        if scan.null_keys_repeat:
            rows = rows.filter(reduce(lambda a, b: a & b, (key.isNotNull() for key in keys)))
        groups = rows.groupBy(*keys).agg(F.count(F.lit(1)).alias("occurs"), F.count_if(_MINE).alias("rows"))
        return groups.filter("occurs > 1 AND rows > 0")

    def _in_scope(self) -> DataFrame:
        target = self._target
        if target.until_snapshot is not None and target.after_snapshot is not None:
            reader = self._spark.read.option("start-snapshot-id", str(target.after_snapshot))
            return reader.option("end-snapshot-id", str(target.until_snapshot)).table(self._table)
        rows = self._spark.table(self._table)
        return rows.filter(self._is_added(rows)) if target.added_paths is not None else rows

    def _is_added(self, rows: DataFrame) -> Any:
        paths = self._target.added_paths
        return F.lit(True) if paths is None else rows.metadataColumn("_file").isin(paths)

    def _sample(self, bad: DataFrame, first: list[str]) -> list[dict[str, Any]]:
        names = list(dict.fromkeys([*first, *bad.columns]))[:_SAMPLE_COLUMNS]
        rows = bad.select(*(quoted(name) for name in names)).limit(self._limit).collect()
        return [{name: _plain(row[name]) for name in names} for row in rows]

    def _guarded(self, answer: Any, scan: Scan) -> ScanAnswer:
        try:
            found: ScanAnswer = answer(scan)
            return found
        except (PySparkException, Py4JJavaError) as error:
            return self._unanswered(error)

    def _unanswered(self, error: Exception) -> ScanAnswer:
        """Return why there is no answer; let what may pass, such as a service that is away, fail the whole job."""
        if not self._insist and explained(error).error_kind == "JobFailed":
            raise error
        return ScanAnswer(error=reason(error))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


if __name__ == "__main__":
    job = ScanSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job.answer, lambda spark: scan_all(spark, job)))
