"""What the built-in jobs share: the session, progress messages, and an answer file also after an error."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from sluice.contracts.spark_jobs import JobAnswer
from sluice.errors import InvalidInput, InvalidPipeline, NothingToDo
from sluice.publishing.certificate import SNAPSHOT_PROPERTY

_DATA_CONDITIONS = (
    "CAST_", "MALFORMED_", "INCOMPATIBLE_", "FAILED_READ_FILE", "UNABLE_TO_INFER", "CANNOT_", "PATH_NOT_FOUND",
    "DATATYPE_MISMATCH", "ARITHMETIC_OVERFLOW", "NUMERIC_", "INVALID_", "MERGE_CARDINALITY", "PARSE_", "DIVIDE_",
    "UNSUPPORTED_", "DUPLICATE_", "COLUMN_", "USER_RAISED_",
)  # fmt: skip
"""Prefixes of Spark's error conditions that the data or the pipeline causes: another attempt fails as well."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)[\].]")
_DATA_WORDS = (
    "CSV header does not conform",
    "is not a Parquet file",
    "Malformed",
    "corrupt",
    "NumberFormatException",
    "Cannot use options",
)
_TABLE_EXISTS = "already exists"
"""Another attempt can succeed: only this attempt writes to the branch, so it created the table itself and the answer of
the catalog was lost. The next attempt has a branch of its own."""
_MAX_LENGTH = 700
_UNCONDITIONAL_DELETE = re.compile(r"^\s*(DELETE\s+FROM\s+(?:`[^`]+`|[\w.])+)\s*;?\s*$", re.IGNORECASE)


def report_progress(doing: str) -> None:
    """Print what the job does now; the worker shows it as the progress of the run."""
    print(f"sluice: {doing}", flush=True)


def run_statement(spark: SparkSession, statement: str) -> None:
    """Run a statement of the pipeline so that its snapshots carry the run and attempt of the session.

    Iceberg commits a DELETE without a condition from metadata alone, and then uses the snapshot properties of the
    thread, not of the session. In a session on a server, whose threads cannot be changed, such a DELETE gets a
    condition that is always true, which deletes row by row.
    """
    if is_remote():
        statement = _UNCONDITIONAL_DELETE.sub(r"\1 WHERE 1 = 1", statement)
    else:
        _set_thread_properties(spark)
    spark.sql(statement)


def _set_thread_properties(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    properties = jvm.java.util.HashMap()
    for key, value in spark.sparkContext.getConf().getAll():
        if key.startswith(SNAPSHOT_PROPERTY):
            properties.put(key.removeprefix(SNAPSHOT_PROPERTY), value)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    field = loader.loadClass("org.apache.iceberg.spark.CommitMetadata").getDeclaredField("COMMIT_PROPERTIES")
    field.setAccessible(True)
    field.get(None).set(properties)


def run_job(answer_file: str, work: Callable[[SparkSession], JobAnswer]) -> int:
    """Run `work` in a session, write its answer or its error into the answer file, and return the exit code."""
    try:
        report_progress("starting the session")
        answer = work(SparkSession.builder.getOrCreate())
    except (InvalidInput, InvalidPipeline, NothingToDo) as error:
        answer = JobAnswer(error=str(error), error_kind=type(error).__name__)
    except (PySparkException, Py4JJavaError) as error:
        answer = error_answer(error)
    Path(answer_file).write_text(answer.model_dump_json())
    return 1 if answer.error else 0


def error_answer(error: Exception) -> JobAnswer:
    """Return the answer for an error of Spark: its message in short, and whether the data caused it."""
    text = reason(error)
    if _TABLE_EXISTS in text:
        return JobAnswer(error=text, error_kind="JobFailed")
    final = isinstance(error, AnalysisException | ParseException)
    conditions = _CONDITION.findall(str(error))
    final = final or any(each.startswith(_DATA_CONDITIONS) for each in conditions)
    final = final or any(word in str(error) for word in _DATA_WORDS)
    return JobAnswer(error=text, error_kind="InvalidInput" if final else "JobFailed")


def reason(error: Exception) -> str:
    """Return the innermost message of an error of Spark, on one line, without stack traces."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        lines = [re.sub(r"^: (?:[\w.$]+: )?", "", lines[1])]  # the first line is py4j's own
    causes = re.findall(r"Caused by: (?:[\w.$]+: )?(.+)", text)
    messages = [lines[0], *causes[-1:]] if causes and causes[-1] not in lines[0] else lines[:1]
    return " — ".join(re.sub(r" SQLSTATE: \w+", "", line) for line in messages)[:_MAX_LENGTH]
