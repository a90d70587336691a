"""Verdicts of checks on generated rows, by the same queries and evaluations as in the audit of a run.

The rows stand for what a run adds to an empty table. A check that needs more than rows is not considered.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from generation.columns import TableShape
from generation.demands import reference_key
from sluice.audit.query_builder import AuditQuery
from sluice.checks.base import ROWS, Check, CheckQuery, Evaluation, check_problems
from sluice.checks.counts import EqualRowCount
from sluice.checks.query import Sql
from sluice.checks.references import Relationships
from sluice.checks.rows import RowCheck
from sluice.metadata.statistics import FileStatistics, StatisticsNeed, TableStatistics
from sluice.sql.dialect import DUCKDB, NeedsSpark

Row = dict[str, Any]
Query = Callable[[str], list[dict[str, Any]]]
ROW_NUMBER = "sluice_row"
"""The column with the position of each loaded row."""


class RowEngine(Protocol):
    """An engine that answers queries in DuckDB's SQL over rows in memory."""

    def load(
        self, rows: Sequence[Row], types: Mapping[str, str], others: Mapping[str, Mapping[str, Sequence[Any]]]
    ) -> AbstractContextManager[Query]:
        """Return a context that queries the view `ROWS`, and views of columns of other tables, by name."""


@dataclass(frozen=True)
class Judgement:
    """A check's evaluation of rows, or the reason why the check was not considered."""

    evaluation: Evaluation | None
    reason: str = ""

    @property
    def accepts(self) -> bool:
        """True if the check accepts the rows, as far as that is known."""
        return self.evaluation is None or self.evaluation.level != "fail"


@dataclass(frozen=True)
class Judge:
    """Evaluator of rows by the checks of one table."""

    shape: TableShape
    checks: Sequence[Check]
    engine: RowEngine
    now: datetime
    references: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def judge(self, rows: Sequence[Row]) -> list[Judgement]:
        """Return the judgement of each check on these rows."""
        statistics = self.statistics(len(rows))
        judgements: dict[int, Judgement] = {}
        queries: dict[str, CheckQuery] = {}
        for index, check in enumerate(self.checks):
            if reason := self.refusal(check):
                judgements[index] = Judgement(None, reason)
            elif evaluation := check.prove(statistics):
                judgements[index] = Judgement(evaluation)
            else:
                queries[str(index)] = check.build_query(DUCKDB, self.shape.types)
        for key, metrics in self._metrics(rows, queries).items():
            check = self.checks[int(key)]
            judgements[int(key)] = (
                Judgement(check.evaluate(metrics, statistics)) if metrics else Judgement(None, "it cannot be answered")
            )
        return [judgements[index] for index in range(len(self.checks))]

    def bad_rows(self, rows: Sequence[Row], checks: Sequence[int]) -> dict[int, list[int]]:
        """Return the positions of the rows that are bad by their own values, by the position of the check."""
        conditions: dict[int, str] = {}
        for index in checks:
            check = self.checks[index]
            if isinstance(check, RowCheck) and not self.refusal(check):
                query = check.build_query(DUCKDB, self.shape.types)
                conditions |= {index: query.bad} if query.bad else {}
        if not conditions or not rows:
            return {index: [] for index in conditions}
        with self._loaded(rows) as run:
            return {index: self._positions(run, condition) for index, condition in conditions.items()}

    def refusal(self, check: Check) -> str:
        """Return the reason why a check cannot judge generated rows, or an empty text."""
        return (
            self._refusal_of_subject(check)
            or self._refusal_of_columns(check)
            or "; ".join(check_problems(check, self.shape.types))
            or ("" if _is_of_columns(check) else self._refusal_of_query(check))
        )

    def _refusal_of_subject(self, check: Check) -> str:
        if isinstance(check, Sql):
            return "it is a query of your own"
        if check.needs & {StatisticsNeed.CHANGE, StatisticsNeed.VOLUMES}:
            return "it is about what a run changes, not about rows"
        if isinstance(check, EqualRowCount):
            return f"it is about the rows of {check.reference.key}"
        if isinstance(check, Relationships) and reference_key(check) not in self.references:
            return f"no values of {reference_key(check)} are known for {check.column}"
        return ""

    def _refusal_of_columns(self, check: Check) -> str:
        computed = [name for name in check.column_names if name in self.shape.computed]
        if computed or (_is_of_columns(check) and self.shape.computed):
            return f"the transform computes {', '.join(computed or self.shape.computed)}"
        if _is_of_columns(check) and not self.shape.is_stated:
            return "no schema states the columns"
        return ""

    def _refusal_of_query(self, check: Check) -> str:
        try:
            check.build_query(DUCKDB, self.shape.types)
        except NeedsSpark as reason:
            return f"Spark alone answers it: {reason}"
        return ""

    def statistics(self, rows: int) -> TableStatistics:
        """Return the statistics of a table with this number of generated rows."""
        files = [FileStatistics(rows=rows, path="generated")]
        return TableStatistics(self.shape.types, files, files, now=self.now)

    def _metrics(self, rows: Sequence[Row], queries: Mapping[str, CheckQuery]) -> dict[str, dict[str, Any]]:
        if not queries:
            return {}
        with self._loaded(rows) as run:
            answers = AuditQuery(
                run, DUCKDB, self.shape.types, queries, with_other_rows=False, sample_rows=0, error_message=str
            ).answers()
        return {key: {} if answer.error else dict(answer.metrics) for key, answer in answers.items()}

    def _loaded(self, rows: Sequence[Row]) -> AbstractContextManager[Query]:
        others: dict[str, dict[str, Sequence[Any]]] = {}
        for check in self.checks:
            if isinstance(check, Relationships) and reference_key(check) in self.references:
                values = self.references[reference_key(check)]
                others.setdefault(check.reference.view, {})[check.field] = values
        return self.engine.load(rows, self.shape.types, others)

    def _positions(self, run: Query, condition: str) -> list[int]:
        positions = run(f"SELECT {ROW_NUMBER} FROM {ROWS} WHERE {condition} ORDER BY {ROW_NUMBER}")
        return [int(row[ROW_NUMBER]) for row in positions]


def _is_of_columns(check: Check) -> bool:
    """Return True if a check is about the columns of the table and never reads a row."""
    return type(check).build_query is Check.build_query
