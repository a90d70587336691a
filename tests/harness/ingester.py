"""Run the built-in job on one table."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakehouse.source_files import Inspection, base_path, distinct_files, find_files, inspect_files
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.errors import InvalidInput
from sluice.input.unreadable import describe_unreadable
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from spark_jobs.ingest import ingest
from spark_jobs.job import error_answer
from tests.harness.lake import LakeReader
from tests.harness.warm_branch import BRANCH

ROWS: list[dict[str, Any]] = [{"id": 1, "name": "a", "ratio": 0.5}, {"id": 2, "name": None, "ratio": 1.5}]


class Ingester:
    """The built-in job on a table of the test's own."""

    def __init__(self, spark: SparkSession, lake: LakeReader, table: str, folder: Path) -> None:
        self._spark, self._lake, self.table, self.folder = spark, lake, table, folder
        self.answer = JobAnswer()
        """The latest answer of the job."""

    def __call__(
        self,
        source: dict[str, Any] | None = None,
        table: dict[str, Any] | None = None,
        *,
        show_values: bool = False,
        **write: Any,
    ) -> JobAnswer:
        stated = Write.model_validate({"source": source, **write} if source else write)
        files = distinct_files(find_files(stated.source))[0] if stated.source else []
        inspection = Inspection()
        if stated.source:
            inspection = inspect_files(files, stated.source, is_transformed=stated.transform is not None)
        spec = IngestSpec(
            spark_catalog="nessie",
            write=stated,
            files=[file.path for file in files],
            rows=inspection.rows,
            read_whole=inspection.read_whole,
            one_value=inspection.one_value,
            empty_objects=inspection.empty_objects,
            column_groups=inspection.column_groups,
            nanoseconds=inspection.nanoseconds,
            foreign_times=inspection.foreign_times,
            missing_fields=inspection.missing_fields if stated.needs_all_fields else [],
            base_path=base_path(stated.source) if stated.source else None,
            tables={self.table: Table.model_validate(table or {})},
            answer="",
            show_values=show_values,
        )
        self.answer = ingest(self._spark, spec)
        return self.answer

    def refused(self, source: dict[str, Any] | None = None, **write: Any) -> str:
        """Return the job's refusal, which must be final and one line long."""
        refusal = self.refusal(source, **write)
        assert refusal is not None, "the job wrote the rows"
        return refusal

    def refusal(self, source: dict[str, Any] | None = None, **write: Any) -> str | None:
        """Return the job's refusal, which must be final and one line long, or None if the job wrote the rows."""
        try:
            answer = self(source, **write)
            if not answer.error:
                return None
        except Exception as error:
            own = JobAnswer(error=str(error), error_kind="InvalidInput")
            answer = own if isinstance(error, InvalidInput) else error_answer(error, show_values=True)
        assert answer.error_kind == "InvalidInput", answer
        assert "\n" not in answer.error
        if answer.unreadable:
            return describe_unreadable(answer.unreadable, None, show_values=True)
        return answer.error

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self._lake.rows(self.table, BRANCH), key=lambda row: (row["id"] is None, row["id"]))


def file(job: Ingester, name: str, content: str | bytes) -> str:
    """Write a file into the test's folder; return its path."""
    path = job.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)
