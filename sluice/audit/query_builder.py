"""Putting the questions of an audit to an engine: everything that one pass can answer goes into one query.

The same code builds the queries for both engines; an engine brings the views and runs the SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.checks.base import BAD_ROWS, ROWS, CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.sql.dialect import Dialect
from sluice.sql.values import ORDERED, kind_of, plain

Rows = list[dict[str, Any]]
Run = Callable[[str], Rows]
_ROWS = "rows"
_SAMPLE_COLUMNS = 12
_SHOWN = (*ORDERED, "boolean", "uuid")


def _no_excuse(_: Exception) -> None:
    return None


@dataclass(frozen=True)
class AuditQuery:
    """The questions about the rows of one table in one scope, and the engine that answers them."""

    run: Run
    sql: Dialect
    types: Mapping[str, str]
    questions: Mapping[str, CheckQuery]
    with_rest: bool
    """Whether other live rows of the table could matter to a question of groups."""
    sample_rows: int
    apart: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By the key of a question of groups, views that part its rows so that no group spans two of them."""
    excuse: Callable[[Exception], str | None] = _no_excuse
    """Why a failed query leaves its questions unanswered; None lets the error pass."""
    _found: dict[str, ScanAnswer] = field(default_factory=dict)

    def answers(self) -> dict[str, ScanAnswer]:
        """Return the answer to each question, by its key."""
        fused = {key: each for key, each in self.questions.items() if not each.query}
        self._fuse(fused)
        for key, question in self.questions.items():
            if key not in self._found:
                self._found[key] = ScanAnswer()
            if not self._found[key].error:
                self._guard(key, question)
        return self._found

    def _fuse(self, questions: Mapping[str, CheckQuery]) -> None:
        """Ask in one pass; if that fails, each question by itself, so that one without an answer spoils no other."""
        if not questions:
            return
        try:
            numbers = self._aggregated(questions)
        except Exception as error:
            if len(questions) > 1:
                for key, question in questions.items():
                    self._fuse({key: question})
                return
            why = self.excuse(error)
            if why is None:
                raise
            self._found.update({key: ScanAnswer(error=why) for key in questions})
            return
        self._found.update({key: ScanAnswer(numbers=each) for key, each in numbers.items()})

    def _aggregated(self, questions: Mapping[str, CheckQuery]) -> dict[str, dict[str, Any]]:
        wanted: dict[tuple[str, str], str] = {}
        for key, question in questions.items():
            if question.bad:
                wanted[key, "failed"] = self.sql.count_if(question.bad)
            if question.where:
                wanted[key, _ROWS] = self.sql.count_if(question.where)
            wanted.update({(key, name): each for name, each in question.aggregates.items()})
        apart = {
            (key, name): f"count(DISTINCT {each})"
            for key, question in questions.items()
            for name, each in question.distinct.items()
        }
        passes = [wanted, *({place: each} for place, each in apart.items())]
        if not self.sql.distinct_apart:
            passes = [wanted | apart]
        rows = None
        found: dict[str, dict[str, Any]] = {key: {} for key in questions}
        for index, one in enumerate(passes):
            listed = [f"{each} AS q{number}" for number, each in enumerate(one.values())]
            if index == 0:
                listed.append("count(*) AS sluice_n")
            (row,) = self.run(f"SELECT {', '.join(listed)} FROM {ROWS}")
            rows = row.get("sluice_n", rows)
            for number, (key, name) in enumerate(one):
                found[key][name] = plain(row[f"q{number}"])
        return {key: {_ROWS: rows, **numbers} for key, numbers in found.items()}

    def _completed(self, key: str, question: CheckQuery) -> ScanAnswer:
        """Ask what takes a query of its own, and for a few of the bad rows."""
        numbers = dict(self._found[key].numbers)
        source, shown = None, question.show
        if question.query:
            source = f"({question.query}\n) AS sluice_bad"
            numbers["failed"] = int(self.run(f"SELECT count(*) AS n FROM {source}")[0]["n"])
        elif question.groups:
            groups = question.groups_with_rest if self.with_rest and question.groups_with_rest else question.groups
            source = f"({groups}) AS sluice_bad"
            numbers["failed"] = self._count_in(groups, self.apart.get(key, [ROWS]))
        elif question.bad:
            source, shown = f"{ROWS} WHERE {question.bad}", self._shown(question.show)
        sample = self._sample(source, shown, question) if source and numbers["failed"] and self.sample_rows else []
        return ScanAnswer(numbers=numbers, sample=sample)

    def _count_in(self, groups: str, views: Sequence[str]) -> int:
        """Add up the bad rows of groups; smaller parts take smaller tables of keys."""
        parts = (f"SELECT {BAD_ROWS} FROM ({groups.replace(f'FROM {ROWS}', f'FROM {view}')}) AS part" for view in views)
        (row,) = self.run(f"SELECT coalesce(sum({BAD_ROWS}), 0) AS n FROM ({' UNION ALL '.join(parts)}) AS parts")
        return int(row["n"])

    def _shown(self, first: list[str]) -> list[str]:
        plain_columns = [name for name, kind in self.types.items() if kind_of(kind) in _SHOWN]
        return list(dict.fromkeys([*first, *plain_columns]))[:_SAMPLE_COLUMNS]

    def _sample(self, source: str, shown: list[str], question: CheckQuery) -> Rows:
        """Return the first bad rows in the order of what is shown: the same ones from either engine."""
        listed = ", ".join(self.sql.column(name) for name in shown)
        order = [name for name in shown if name in self.types and kind_of(self.types[name]) in _SHOWN]
        ordered = ", ".join(f"{self.sql.column(name)} NULLS FIRST" for name in order)
        columns = "*" if question.query else f"{listed}, {BAD_ROWS}" if question.groups else listed
        by = f" ORDER BY {ordered}" if ordered and not question.query else ""
        rows = self.run(f"SELECT {columns} FROM {source}{by} LIMIT {self.sample_rows}")
        return [
            {
                ("rows" if name == BAD_ROWS else name): plain(value)
                for name, value in list(row.items())[:_SAMPLE_COLUMNS]
            }
            for row in rows
        ]

    def _guard(self, key: str, question: CheckQuery) -> None:
        try:
            self._found[key] = self._completed(key, question)
        except Exception as error:
            why = self.excuse(error)
            if why is None:
                raise
            self._found[key] = ScanAnswer(error=why)
