"""Make the result of a check from its evaluation, or from the reason why it was not answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.checks.base import Check, Evaluation
from sluice.checks.query import Sql
from sluice.checks.verdicts import MAX_SAMPLE_ROWS, AnsweredBy, BadRowsQuery, CheckResult, Verdict, short_row, title
from sluice.redaction import redacted


def check_title(check: Check) -> str:
    """Return the kind of a check with its columns or its name: `not_null(id)`, `sql(no orphans)`."""
    return title(check.check, check.column_names, _name(check))


def _name(check: Check) -> str:
    return check.name if isinstance(check, Sql) else ""


@dataclass(frozen=True)
class AnswerSource:
    """The source of an answer, with the bad rows that it shows and the amount of data read."""

    by: AnsweredBy
    sample: Sequence[dict[str, Any]] = ()
    files: int = 0
    bytes: int = 0
    query: BadRowsQuery | None = None


def check_result(table: str, index: int, check: Check, evaluation: Evaluation, source: AnswerSource) -> CheckResult:
    """Return the result of a check: its evaluation with the severity applied, and the evidence."""
    verdict: Verdict = "warn" if evaluation.level == "fail" and check.severity == "warn" else evaluation.level
    return CheckResult(
        table=table,
        index=index,
        check=check.check,
        columns=check.column_names,
        name=_name(check),
        verdict=verdict,
        observed=evaluation.observed,
        expected=check.expected,
        answered_by=source.by,
        failed_rows=evaluation.failed_rows,
        sample=[] if evaluation.passed else [short_row(row) for row in source.sample[:MAX_SAMPLE_ROWS]],
        scope=check.scope,
        files=source.files,
        bytes=source.bytes,
        bad_rows_query=source.query,
    )


def error_result(table: str, index: int, check: Check, why: str) -> CheckResult:
    """Return the result of a check that could not be answered. It blocks with any severity."""
    return CheckResult(
        table=table,
        index=index,
        check=check.check,
        columns=check.column_names,
        name=_name(check),
        verdict="error",
        expected=check.expected,
        scope=check.scope,
        message=redacted(why),
    )


def missing_verdicts(checks: Mapping[str, Sequence[Check]], results: Sequence[CheckResult]) -> list[CheckResult]:
    """Return an error for every check, by table, that has no result. It blocks, because nothing was proven."""
    answered = {(result.table, result.index) for result in results}
    return [
        error_result(table, index, check, "no engine answered it")
        for table, listed in checks.items()
        for index, check in enumerate(listed)
        if (table, index) not in answered
    ]
