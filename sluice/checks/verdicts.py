"""Verdicts: the result of each check with its evidence, and the report of the whole audit."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage

Verdict = Literal["pass", "warn", "fail", "error"]
AnsweredBy = Literal["metadata", "duckdb", "spark"]
"""The source of an answer: metadata, or the name of a scan engine."""

SAMPLE_ROWS = 5
"""Number of bad rows per check in a history and in a report on a terminal."""
MAX_SAMPLE_ROWS = 100
"""Maximum number of bad rows per check in the report in the lake, for `quarantine show --rows`."""
_ROWS_OF_ALL_CHECKS = 5_000
_CELL = 120
_NAME = 60
"""Maximum length of a check's name in a title, in characters."""
_TEXT_BYTES = 600_000
"""Maximum size of the texts of a run's verdicts, in bytes. With the rest of 5,000 verdicts, they fit into a payload."""
_LONGEST_TEXTS, _SHORTEST_TEXTS = 4_000, 16
_REPORT_BYTES = 40 * 1024
"""Size to which samples are trimmed for a history, in bytes. Temporal warns at 256 KiB for one message."""


class BadRowsQuery(WireMessage):
    """A query that finds the bad rows of a check on the branch of its run."""

    sql: str
    dialect: Literal["duckdb", "spark"]


class CheckResult(WireMessage):
    """One check's verdict and its evidence."""

    table: str
    index: int = -1
    """Its position among the table's checks in the pipeline file, from 0; -1 for a verdict on no single check."""
    check: str
    columns: list[str]
    name: str = ""
    """Its name in the pipeline file, if it has one: a check `sql` may have a name."""
    verdict: Verdict
    observed: Any = None
    expected: str = ""
    answered_by: AnsweredBy | None = None
    """None if the check could not be answered."""
    failed_rows: int | None = None
    sample: list[dict[str, Any]] = Field(default_factory=list)
    """A few of the bad rows, with long values shortened."""
    scope: str = "added"
    files: int = 0
    """Number of data files that were read for it."""
    bytes: int = 0
    """Size of its columns in the files of its scope, in bytes."""
    message: str = ""
    """The reason why the check could not be answered."""
    bad_rows_query: BadRowsQuery | None = None
    """The query that finds its bad rows; None if there is none. It is left out if the verdicts become too large."""

    @property
    def blocks(self) -> bool:
        """True if this verdict blocks the merge. A check that could not be answered blocks too."""
        return self.verdict in ("fail", "error")

    @property
    def title(self) -> str:
        """The kind of the check with its columns or its name: `not_null(id)`, `sql(no orphans)`."""
        return title(self.check, self.columns, self.name)


class AuditReport(WireMessage):
    """The verdicts of an audit on one branch at one hash."""

    branch: str
    audited_hash: str
    checks: list[CheckResult] = Field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if nothing blocks the merge."""
        return not any(check.blocks for check in self.checks)

    @property
    def digest(self) -> str:
        """The SHA-256 of the report in hexadecimal, which an approval names.

        It covers every verdict but not the samples of bad rows, which a history shortens. So the digest equals that of
        the whole report in the lake.
        """
        return hashlib.sha256(f"{self.branch} {self.audited_hash} {verdicts_digest(self.checks)}".encode()).hexdigest()

    @property
    def summary(self) -> str:
        """The number of verdicts of each kind: `12 pass, 1 warn`."""
        return count_verdicts(self.checks)


def verdicts_digest(checks: Sequence[CheckResult]) -> str:
    """Return the SHA-256 over verdicts in hexadecimal, independent of their order and without their samples.

    The name and the query of a check are left out too: they follow from what the check expects.
    """
    lines = sorted(check.model_dump_json(exclude={"sample", "name", "bad_rows_query"}) for check in checks)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def count_verdicts(checks: Sequence[CheckResult], waived: int = 0) -> str:
    """Return the number of verdicts of each kind: `12 pass, 1 warn`.

    Args:
        waived: number of failed checks that are waived: `1 fail (waived)`, `2 fail (1 waived)`.
    """
    counts = {kind: sum(c.verdict == kind for c in checks) for kind in ("pass", "warn", "fail", "error")}
    notes = {"fail": " (waived)" if waived == counts["fail"] else f" ({waived} waived)"} if waived else {}
    return ", ".join(f"{count} {kind}{notes.get(kind, '')}" for kind, count in counts.items() if count) or "no checks"


def sample_size(checks: int) -> int:
    """Return the number of bad rows that a scan samples per check, which falls as the number of checks grows."""
    return max(SAMPLE_ROWS, min(MAX_SAMPLE_ROWS, _ROWS_OF_ALL_CHECKS // max(checks, 1)))


def title(kind: str, columns: Sequence[str], name: str) -> str:
    """Return the kind of a check with its columns, or with its shortened name if it has no columns."""
    about = ", ".join(columns) or (name if len(name) <= _NAME else name[: _NAME - 1] + "…")
    return f"{kind}({about})" if about else kind


def short_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its long values shortened."""
    return {
        key: value[:_CELL] + "…" if isinstance(value, str) and len(value) > _CELL else value
        for key, value in row.items()
    }


def short_verdicts(results: Sequence[CheckResult], checks: int) -> list[CheckResult]:
    """Return results with texts shortened so that one result for each check of a run fits into one payload.

    The lengths depend only on the result and the number of checks, so a report has one digest wherever it is stored.

    Args:
        checks: number of checks of the run.
    """
    limit = max(_SHORTEST_TEXTS, min(_LONGEST_TEXTS, _TEXT_BYTES // max(checks, 1)))
    return [_with_short_texts(each, limit) for each in results]


def _with_short_texts(result: CheckResult, limit: int) -> CheckResult:
    each = max(_SHORTEST_TEXTS, limit - _size(result.columns)) // 2
    observed = result.observed
    if _size(observed) > each:
        observed = _short_text(observed if isinstance(observed, str) else json.dumps(observed, default=str), each)
    texts = {"expected": _short_text(result.expected, each), "message": _short_text(result.message, each)}
    query = result.bad_rows_query
    if query and _size(query.sql) > limit // 2:  # a part of a query finds other rows
        query = None
    return result.model_copy(update={**texts, "observed": observed, "bad_rows_query": query})


def _short_text(text: str, limit: int) -> str:
    """Return a text, cut so that it takes at most `limit` bytes as JSON."""
    text = text if len(text) <= limit else text[:limit] + "…"
    while _size(text) > limit:
        over = max(1, (_size(text) - limit) // 6)  # a character takes six bytes at most
        text = text.removesuffix("…")[: -over - 1] + "…" if len(text) > 1 else ""
    return text


def _size(value: Any) -> int:
    """Return the size of a value as JSON, in bytes, without the quotes of a text."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode()) - 2 * isinstance(value, str)


def with_whole_samples(verdicts: Sequence[CheckResult], stored: Sequence[CheckResult]) -> list[CheckResult]:
    """Return verdicts with the whole samples of the stored report, which a history keeps shortened.

    A job can write to the lake, where the report is stored. So a stored sample is used only for a verdict that is
    otherwise the same, and no verdict changes.
    """
    samples = {verdicts_digest([each]): each.sample for each in stored}
    return [each.model_copy(update={"sample": samples.get(verdicts_digest([each]), each.sample)}) for each in verdicts]


def trim_samples(
    checks: Sequence[CheckResult], limit: int = _REPORT_BYTES, most: int = SAMPLE_ROWS
) -> list[CheckResult]:
    """Return results with their samples trimmed until all together take at most `limit` bytes.

    Each sample keeps `most` rows, then `SAMPLE_ROWS`, then one, then none. Verdicts are never dropped.
    """
    trimmed = list(checks)
    for rows in (most, *(fewer for fewer in (SAMPLE_ROWS, 1, 0) if fewer < most)):
        trimmed = [
            check.model_copy(update={"sample": check.sample[:rows]}) if len(check.sample) > rows else check
            for check in trimmed
        ]
        if not any(check.sample for check in trimmed) or _fit(trimmed, limit):
            break
    return trimmed


def _fit(checks: Sequence[CheckResult], limit: int) -> bool:
    left = limit
    for check in checks:
        left -= len(check.model_dump_json().encode())
        if left < 0:
            return False
    return True
