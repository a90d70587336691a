"""An engine that runs Sluice's Spark jobs in this process, on the catalog in memory, by PyIceberg and DuckDB.

The activities around it are the real ones: a job reads its specification from a file and answers by a file. Rows have
the columns of `MemoryLake`. Tests in `tests/component` and `tests/e2e` cover Spark itself. A user's program is a
function of the test: it gets the job and returns the rows to append to a table.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat
from sluice.contracts.progress import Progress
from sluice.contracts.references import RunRef
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.errors import InvalidInput
from sluice.sealed_answer import seal_answer
from tests.harness.memory_lake import MemoryLake

Interrupt = Callable[[SparkJob], None]
"""A function called before a job writes. Its exception fails the job."""
Rows = list[dict[str, int]]
Program = Callable[[SparkJob], tuple[str, Rows]]
"""A user's program: it returns a table and the rows to append to it."""


class MemoryEngine:
    """An engine for `spark_jobs/ingest.py`, in every mode of a pipeline except compact, and for programs of a test."""

    has_jvm = True

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake
        self.before_write: Interrupt = lambda _: None
        self.programs: dict[Path, Program] = {}

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job in a thread."""
        heartbeat(Progress(doing="writing"))
        log = job.folder / "job.log"
        log.touch()
        await asyncio.to_thread(self._run, job)
        return JobResult(0, [], log)

    async def warm_up(self) -> None:
        """Do nothing: there is nothing to start."""

    async def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _run(self, job: SparkJob) -> None:
        self.before_write(job)
        if program := self.programs.get(job.program):
            table, rows = program(job)
            self._lake.append_rows(job.branch, table, rows, _run_ref(job))
            return
        if job.program.name != "ingest.py":
            raise NotImplementedError(f"{job.program.name} needs Spark")
        spec = IngestSpec.model_validate_json(Path(job.args[0]).read_text())
        try:
            answer = self._ingest(spec, job.branch, _run_ref(job))
        except InvalidInput as error:
            answer = JobAnswer(error=str(error), error_kind="InvalidInput")
        Path(spec.answer).write_text(seal_answer(answer, spec.answer_key))

    def _ingest(self, spec: IngestSpec, branch: str, run_ref: RunRef) -> JobAnswer:
        if spec.write.mode == "sql":
            self._run_statements(spec.write.statements, branch, run_ref)
            return JobAnswer()
        ((table, stated),) = spec.tables.items()
        read = [row for file in spec.files for row in _read_csv(file)]
        rows = self._transform(read, spec.write.transform)
        if not rows:
            raise InvalidInput("the transform leaves no row")
        self._lake.create_table(branch, table, stated.partition_by)
        if spec.write.mode == "append":
            self._lake.append_rows(branch, table, rows, run_ref)
        elif spec.write.mode == "overwrite":
            self._lake.replace_rows(branch, table, rows, run_ref)
        elif spec.write.mode == "overwrite_partitions":
            self._lake.replace_partitions(branch, table, rows, run_ref)
        elif spec.write.mode == "merge":
            merged = _merged(self._lake.rows(table, branch), rows, spec.write.keys)
            self._lake.replace_rows(branch, table, merged, run_ref)
            return JobAnswer(rows_merged=len(rows))  # as the Spark job answers
        else:
            raise NotImplementedError(f"mode: {spec.write.mode} needs Spark")
        return JobAnswer(rows_read=len(read), rows_written=len(rows))

    def _transform(self, rows: Rows, transform: str | None) -> Rows:
        """Run a transform by DuckDB."""
        if transform is None:
            return rows
        connection = duckdb.connect()
        connection.register("source", pa.Table.from_pylist(rows, schema=self._lake.arrow_schema))
        transformed: Rows = connection.sql(transform).arrow().read_all().to_pylist()
        return transformed

    def _run_statements(self, statements: Sequence[str], branch: str, run_ref: RunRef) -> None:
        """Run statements by DuckDB on copies of the tables; write back the rows of changed tables."""
        connection = duckdb.connect()
        names: dict[str, str] = {}
        for statement in statements:
            for quoted in re.findall(r"(?:`?\w+`?\.)+`?\w+`?", statement):
                names.setdefault(quoted, ".".join(quoted.replace("`", "").split(".")[-2:]))
        tables = {table: f"t{number}" for number, table in enumerate(sorted(set(names.values())))}
        before: dict[str, Rows] = {}
        for table, alias in tables.items():
            before[table] = self._lake.rows(table, branch)
            connection.register(f"arrow_{alias}", pa.Table.from_pylist(before[table], schema=self._lake.arrow_schema))
            connection.execute(f"CREATE TABLE {alias} AS SELECT * FROM arrow_{alias}")
        for statement in statements:
            renamed = statement
            for quoted, table in sorted(names.items(), key=lambda pair: -len(pair[0])):
                renamed = renamed.replace(quoted, tables[table])
            connection.execute(renamed.replace("`", '"'))
        for table, alias in tables.items():
            columns = self._lake.arrow_schema.names
            after = [dict(zip(columns, row, strict=True)) for row in connection.sql(f"FROM {alias}").fetchall()]
            if after != before[table]:
                self._lake.replace_rows(branch, table, after, run_ref)


def _run_ref(job: SparkJob) -> RunRef:
    return RunRef(
        run_id=job.run_id,
        workflow_id="",
        pipeline=job.pipeline,
        label=job.pipeline,
        attempt=job.attempt,
        partition=job.partition,
    )


def _merged(old: Sequence[Mapping[str, int]], new: Rows, keys: Sequence[str]) -> list[Mapping[str, int]]:
    """Return the rows of a table after merging new rows by their keys.

    Raises:
        InvalidInput: two new rows have the same key.
    """
    by_key: dict[tuple[int, ...], Mapping[str, int]] = {tuple(row[key] for key in keys): row for row in new}
    if len(by_key) != len(new):
        raise InvalidInput(f"merge keys ({', '.join(keys)}) occur more than once in the input")
    before = {tuple(row[key] for key in keys): row for row in old}
    return list({**before, **by_key}.values())


def _read_csv(file: str) -> Rows:
    rows: Rows = pa_csv.read_csv(file).to_pylist()
    return rows
