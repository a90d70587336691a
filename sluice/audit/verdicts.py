"""Verdicts: what the audit says, check by check and as a whole."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.checks.base import Check, Finding

Verdict = Literal["pass", "warn", "fail", "error"]
AnsweredBy = Literal["metadata", "duckdb", "spark"]

SAMPLE_ROWS = 5
_CELL = 120
_REPORT_BYTES = 40 * 1024
"""What a report may weigh in a history. Temporal warns at 256 KiB; many checks share one message."""


class CheckResult(Model):
    """One check's verdict and its evidence."""

    table: str
    index: int = -1
    """Its place among the table's checks in the pipeline file, from 0."""
    check: str
    columns: list[str]
    verdict: Verdict
    observed: Any = None
    expected: str = ""
    answered_by: AnsweredBy | None = None
    """None where the check could not be answered."""
    failed_rows: int | None = None
    sample: list[dict[str, Any]] = Field(default_factory=list)
    """A few of the bad rows, cut short."""
    scope: str = "added"
    files: int = 0
    """How many data files were read for it."""
    bytes: int = 0
    """How many bytes its columns take in them."""
    message: str = ""
    """Why the check could not be answered."""

    @property
    def blocks(self) -> bool:
        """Whether this verdict keeps the branch out of main. No evidence is never a pass."""
        return self.verdict in ("fail", "error")

    @property
    def title(self) -> str:
        """The check as a person would call it."""
        return f"{self.check}({', '.join(self.columns)})" if self.columns else self.check


class AuditReport(Model):
    """Every verdict on one branch at one hash."""

    branch: str
    audited_hash: str
    checks: list[CheckResult] = Field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing blocks the merge."""
        return not any(check.blocks for check in self.checks)

    @property
    def digest(self) -> str:
        """The SHA-256 of the report, in hexadecimal: what an approval is for."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def summary(self) -> str:
        """The verdicts in short: `12 pass, 1 warn`."""
        return count_verdicts(self.checks)


def count_verdicts(checks: Sequence[CheckResult]) -> str:
    """Say how many checks there are of each verdict."""
    counts = {kind: sum(c.verdict == kind for c in checks) for kind in ("pass", "warn", "fail", "error")}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no checks"


def label(check: Check) -> str:
    """Return a check as a person would call it: its name and columns."""
    return f"{check.check}({', '.join(check.column_names)})" if check.column_names else check.check


@dataclass(frozen=True)
class AnswerSource:
    """How an answer came about."""

    by: AnsweredBy
    sample: Sequence[dict[str, Any]] = ()
    files: int = 0
    bytes: int = 0


def check_result(table: str, index: int, check: Check, finding: Finding, reply: AnswerSource) -> CheckResult:
    """Weigh a finding by the check's severity and write the result down."""
    verdict: Verdict = "warn" if finding.level == "fail" and check.severity == "warn" else finding.level
    return CheckResult(
        table=table,
        index=index,
        check=check.check,
        columns=check.column_names,
        verdict=verdict,
        observed=finding.observed,
        expected=check.expected,
        answered_by=reply.by,
        failed_rows=finding.failed_rows,
        sample=[] if finding.passed else [short_row(row) for row in reply.sample[:SAMPLE_ROWS]],
        scope=check.scope,
        files=reply.files,
        bytes=reply.bytes,
    )


def error_result(table: str, index: int, check: Check, why: str) -> CheckResult:
    """Write down that a check could not be answered, which blocks whatever its severity."""
    return CheckResult(
        table=table,
        index=index,
        check=check.check,
        columns=check.column_names,
        verdict="error",
        expected=check.expected,
        scope=check.scope,
        message=why,
    )


def short_row(row: dict[str, Any]) -> dict[str, Any]:
    """Cut long values, so that a sample stays a sample."""
    return {
        key: value[:_CELL] + "…" if isinstance(value, str) and len(value) > _CELL else value
        for key, value in row.items()
    }


def trim_samples(checks: Sequence[CheckResult], limit: int = _REPORT_BYTES) -> list[CheckResult]:
    """Return results with their samples thinned until they weigh at most `limit` bytes together.

    First each sample keeps one row, then none; verdicts are never dropped.
    """
    thinned = list(checks)
    for rows in (SAMPLE_ROWS, 1, 0):
        thinned = [check.model_copy(update={"sample": check.sample[:rows]}) for check in thinned]
        if sum(len(check.model_dump_json().encode()) for check in thinned) <= limit:
            break
    return thinned
