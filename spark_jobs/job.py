"""Helpers of the built-in jobs: the session, progress messages, and an answer file even after an error."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from sluice.contracts.spark_jobs import JobAnswer
from sluice.errors import InvalidInput, InvalidPipeline, NothingToDo
from sluice.publishing.commit_properties import SNAPSHOT_PROPERTY
from sluice.row_values import mask_values
from sluice.sealed_answer import seal_answer

_DATA_CONDITIONS = (
    "CAST_", "MALFORMED_", "INCOMPATIBLE_", "FAILED_READ_FILE", "UNABLE_TO_INFER", "CANNOT_", "PATH_NOT_FOUND",
    "DATATYPE_MISMATCH", "ARITHMETIC_OVERFLOW", "NUMERIC_", "INVALID_", "MERGE_CARDINALITY", "PARSE_", "DIVIDE_",
    "UNSUPPORTED_", "DUPLICATE_", "COLUMN_", "USER_RAISED_",
)  # fmt: skip
"""Prefixes of Spark's error conditions that the data or the pipeline causes, so that another attempt fails as well."""
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
"""Text of an error after which another attempt can succeed. Only this attempt writes to the branch, so it created the
table itself, and the answer of the catalog was lost. The next attempt has a branch of its own."""
_UNKNOWN_NAMES = ("UNRESOLVED_COLUMN", "TABLE_OR_VIEW_NOT_FOUND")
_COLUMN_EXISTS = "COLUMN_ALREADY_EXISTS"
"""Condition of the error that the input has a column twice. The text is the same, but another attempt fails as well."""
_NO_DATA = "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA"
_MAX_LENGTH, _MAX_NAME = 700, 300
_MAX_CAUSES = 12
_MAX_CAUSE = 400
_JAVA_ERROR = re.compile(r"(Caused by: )?\(?[a-z]\w*(\.[\w$]+)+(Exception|Error)\b")
_UNCONDITIONAL_DELETE = re.compile(r"^\s*(DELETE\s+FROM\s+(?:`[^`]+`|[\w.])+)\s*;?\s*$", re.IGNORECASE)


def report_progress(doing: str) -> None:
    """Print the job's current step, which the worker shows as the progress of the run."""
    print(f"sluice: {doing}", flush=True)


def run_statement(spark: SparkSession, statement: str) -> None:
    """Run a statement of the pipeline so that its snapshots carry the run and attempt of the session.

    Iceberg commits a DELETE without a condition from metadata alone, with the snapshot properties of the thread, and
    not of the session. This function therefore sets the properties of the thread. A session on a server cannot do
    that, so there such a DELETE gets a condition that is always true, and deletes row by row.
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


class JobSpec(Protocol):
    """The part of every built-in job's spec: the answer file, its key, and True if messages may quote rows."""

    @property
    def answer(self) -> str: ...
    @property
    def answer_key(self) -> str: ...
    @property
    def show_values(self) -> bool: ...


def run_job(spec: JobSpec, work: Callable[[SparkSession], JobAnswer]) -> int:
    """Run `work` in a session, write its answer or its error to the answer file, and return the exit code."""
    try:
        report_progress("starting the session")
        answer = work(SparkSession.builder.getOrCreate())
    except (InvalidInput, InvalidPipeline, NothingToDo) as error:
        answer = JobAnswer(error=str(error), error_kind=type(error).__name__)
    except (PySparkException, Py4JJavaError) as error:
        log_error(error)
        answer = error_answer(error, show_values=spec.show_values)
    _write_private(Path(spec.answer), seal_answer(answer, spec.answer_key))
    return 1 if answer.error else 0


def log_error(error: Exception) -> None:
    """Write an error, with the values that it quotes, to the job's log, which only its owner can read."""
    print(reason(error, show_values=True), file=sys.stderr)


def _write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read. Replace a file that somebody else put there, and never write to it."""
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)


def error_answer(error: Exception, *, show_values: bool = False) -> JobAnswer:
    """Return the answer for an error of Spark: its short message, and `InvalidInput` if the data caused it."""
    text = reason(error, show_values=show_values)
    if _TABLE_EXISTS in text and _COLUMN_EXISTS not in text:
        return JobAnswer(error=text, error_kind="JobFailed", causes=causes(error))
    final = isinstance(error, AnalysisException | ParseException)
    conditions = _CONDITION.findall(str(error))
    final = final or any(each.startswith(_DATA_CONDITIONS) for each in conditions)
    final = final or any(word in str(error) for word in _DATA_WORDS)
    kind: Literal["InvalidInput", "JobFailed"] = "InvalidInput" if final else "JobFailed"
    return JobAnswer(error=text, error_kind=kind, repeats_name=bool(_repeated_name(error)), causes=causes(error))


def causes(error: Exception) -> list[str]:
    """Return the errors of Java behind an error of Spark, each on one line with its class and message."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines()]
    named = [line for line in lines if _JAVA_ERROR.match(line)]
    return [line.removeprefix("Caused by: ")[:_MAX_CAUSE] for line in named[:_MAX_CAUSES]]


@contextmanager
def naming(query: str) -> Iterator[None]:
    """Name the pipeline's query in the error if the query uses an unknown column or table.

    Raises:
        InvalidInput: the query uses an unknown column or table.
    """
    try:
        yield
    except AnalysisException as error:
        if unknown := _unknown_name(error):
            raise InvalidInput(f"{query}: {unknown}") from error
        raise


def _unknown_name(error: Exception) -> str:
    """Return a message that names the unknown column or table of a query, or an empty text for any other error."""
    condition = (error.getCondition() or "") if isinstance(error, AnalysisException) else ""
    if not isinstance(error, AnalysisException) or not condition.startswith(_UNKNOWN_NAMES):
        return ""
    names = error.getMessageParameters() or {}
    if condition.startswith("TABLE_OR_VIEW"):
        return f"there is no table {names.get('relationName', '')}"[:_MAX_LENGTH]
    known = f"; there are {names['proposal']}" if names.get("proposal") else ""
    return f"there is no column {names.get('objectName', '')}{known}"[:_MAX_LENGTH]


def _repeated_name(error: Exception) -> str:
    """Return a message that names the column that the input has twice, or an empty text for any other error."""
    if not isinstance(error, AnalysisException) or error.getCondition() != _COLUMN_EXISTS:
        return ""
    return f"the input has the column {(error.getMessageParameters() or {}).get('columnName', '')} twice"[:_MAX_LENGTH]


def _missing_field(error: Exception) -> str:
    """Return a message that names the table's field that the input lacks, or an empty text for any other error."""
    condition = (error.getCondition() or "") if isinstance(error, AnalysisException) else ""
    if not isinstance(error, AnalysisException) or condition != _NO_DATA:
        return ""
    name = (error.getMessageParameters() or {}).get("colName", "")
    return f"the input has no field {name}, which the table has: add it, or NULL in its place, by a transform"[
        :_MAX_LENGTH
    ]


def reason(error: Exception, *, show_values: bool) -> str:
    """Return the innermost message of an error of Spark, on one line, without stack traces.

    Args:
        show_values: True if the message may quote values of rows. An error in a query or plan contains no values, since
            it occurs before rows are read.
    """
    if name := _unknown_name(error) or _repeated_name(error) or _missing_field(error):
        return name
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        lines = [re.sub(r"^: (?:[\w.$]+: )?", "", lines[1])]  # the first line is py4j's own
    causes = re.findall(r"Caused by: (?:[\w.$]+: )?(.+)", text)
    messages = [lines[0], *causes[-1:]] if causes and causes[-1] not in lines[0] else lines[:1]
    lines = [re.sub(r" SQLSTATE: \w+", "", line) for line in messages]
    if not (show_values or isinstance(error, AnalysisException | ParseException)):
        lines = [mask_values(line) for line in lines]
    return " — ".join(lines)[:_MAX_LENGTH]
