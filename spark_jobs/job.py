"""What the built-in jobs share: a session, a word on what they do, and an answer whatever happens."""

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
"""Beginnings of Spark's error conditions that lie in the data or the pipeline: the same again fails again."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)[\].]")
_DATA_WORDS = (
    "CSV header does not conform",
    "is not a Parquet file",
    "Malformed",
    "corrupt",
    "NumberFormatException",
    "Cannot use options",
)
_ALREADY_THERE = "already exists"
"""A table that was not there a moment ago, on a branch that is this attempt's alone: the answer to its own making was
lost, and the next attempt makes it on a branch of its own."""
_LONGEST = 700
_UNCONDITIONAL = re.compile(r"^\s*(DELETE\s+FROM\s+(?:`[^`]+`|[\w.])+)\s*;?\s*$", re.IGNORECASE)


def say(doing: str) -> None:
    """Tell the worker what the job does now; it shows as the run's progress."""
    print(f"sluice: {doing}", flush=True)


def run_statement(spark: SparkSession, statement: str) -> None:
    """Run a statement of the pipeline's, such that its snapshots carry the session's marks.

    Iceberg commits a DELETE without a condition from metadata alone, and then heeds only the properties of the
    server's thread, not of the session. Where that thread is out of reach, the rows are deleted one by one.
    """
    if is_remote():
        statement = _UNCONDITIONAL.sub(r"\1 WHERE 1 = 1", statement)
    else:
        _mark_thread(spark)
    spark.sql(statement)


def _mark_thread(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    found = jvm.java.util.HashMap()
    for key, value in spark.sparkContext.getConf().getAll():
        if key.startswith(SNAPSHOT_PROPERTY):
            found.put(key.removeprefix(SNAPSHOT_PROPERTY), value)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    field = loader.loadClass("org.apache.iceberg.spark.CommitMetadata").getDeclaredField("COMMIT_PROPERTIES")
    field.setAccessible(True)
    field.get(None).set(found)


def run_job(answer_file: str, work: Callable[[SparkSession], JobAnswer]) -> int:
    """Run `work` in a session and leave its answer, or what went wrong, in the answer file."""
    try:
        say("starting the session")
        answer = work(SparkSession.builder.getOrCreate())
    except (InvalidInput, InvalidPipeline, NothingToDo) as error:
        answer = JobAnswer(error=str(error), error_kind=type(error).__name__)
    except (PySparkException, Py4JJavaError) as error:
        answer = explained(error)
    Path(answer_file).write_text(answer.model_dump_json())
    return 1 if answer.error else 0


def explained(error: Exception) -> JobAnswer:
    """Return the answer for an error of Spark: what it says in short, and whether the data is to blame."""
    text = reason(error)
    if _ALREADY_THERE in text:
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
        lines = [re.sub(r"^: (?:[\w.$]+: )?", "", lines[1])]  # py4j's own words come first
    causes = re.findall(r"Caused by: (?:[\w.$]+: )?(.+)", text)
    said = [lines[0], *causes[-1:]] if causes and causes[-1] not in lines[0] else lines[:1]
    return " — ".join(re.sub(r" SQLSTATE: \w+", "", line) for line in said)[:_LONGEST]
