"""Query builder: compute the metrics of many checks in as few queries as possible.

The same code builds the queries for every engine. An engine provides the views and runs the SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.checks.base import BAD_ROWS, OTHER_ROWS, ROWS, CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.sql.dialect import Dialect
from sluice.sql.values import ORDERED, kind_of, plain

Rows = list[dict[str, Any]]
RunQuery = Callable[[str], Rows]
_ROWS = "rows"
_SAMPLE_COLUMNS = 50
_ORDERED_COLUMNS = 12
_MAX_QUERIES = 500
"""Maximum number of checks that one pass answers. Engines fail on thousands of expressions."""
_USER_QUERIES_AT_ONCE = 16
_SAMPLED_KINDS = (*ORDERED, "boolean", "uuid")


def _raise_every_error(_: Exception) -> None:
    return None


@dataclass(frozen=True)
class AuditQuery:
    """The check queries on one table in one scope, and the engine that runs them."""

    run: RunQuery
    sql: Dialect
    types: Mapping[str, str]
    queries: Mapping[str, CheckQuery]
    with_other_rows: bool
    """True if grouped queries must also read the other live rows of the table."""
    sample_rows: int
    disjoint_views: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Views by the key of a grouped query. They split its rows so that no group spans two views."""
    error_message: Callable[[Exception], str | None] = _raise_every_error
    """Function that returns the message for a check that an error leaves unanswered, or None to raise the error."""
    _answers: dict[str, ScanAnswer] = field(default_factory=dict)

    def answers(self) -> dict[str, ScanAnswer]:
        """Run all queries and return the answer to each by its key."""
        self._aggregate({key: query for key, query in self.queries.items() if not query.user_query})
        self._count_of_user_queries({key: each.user_query for key, each in self.queries.items() if each.user_query})
        for key, query in self.queries.items():
            answer = self._answers.setdefault(key, ScanAnswer())
            if not answer.error:
                self._answers[key] = self._completed_or_error(answer, key, query)
        return self._answers

    def _aggregate(self, queries: Mapping[str, CheckQuery]) -> None:
        """Compute the metrics of many checks in one pass. If it fails, halve the checks until one causes the error."""
        if not queries:
            return
        if len(queries) > _MAX_QUERIES:
            keys = list(queries)
            for start in range(0, len(keys), _MAX_QUERIES):
                self._aggregate({key: queries[key] for key in keys[start : start + _MAX_QUERIES]})
            return
        try:
            metrics = self._run_aggregates(queries)
        except Exception as error:
            if len(queries) > 1:
                half = dict(list(queries.items())[: len(queries) // 2])
                self._aggregate(half)
                self._aggregate({key: query for key, query in queries.items() if key not in half})
                return
            message = self.error_message(error)
            if message is None:
                raise
            self._answers.update({key: ScanAnswer(error=message) for key in queries})
            return
        self._answers.update({key: ScanAnswer(metrics=each) for key, each in metrics.items()})

    def _run_aggregates(self, queries: Mapping[str, CheckQuery]) -> dict[str, dict[str, Any]]:
        aggregates: dict[tuple[str, str], str] = {}
        for key, query in queries.items():
            if query.bad:
                aggregates[key, "failed"] = self.sql.count_if(query.bad)
            if query.where:
                aggregates[key, _ROWS] = self.sql.count_if(query.where)
            aggregates.update({(key, name): each for name, each in query.aggregates.items()})
        distinct = {
            (key, name): f"count(DISTINCT {each})"
            for key, query in queries.items()
            for name, each in query.distinct.items()
        }
        passes = [aggregates, *({metric: each} for metric, each in distinct.items())]
        if not self.sql.separate_distinct:
            passes = [aggregates | distinct]
        rows = None
        metrics: dict[str, dict[str, Any]] = {key: {} for key in queries}
        for index, expressions in enumerate(passes):
            listed = [f"{each} AS q{number}" for number, each in enumerate(expressions.values())]
            if index == 0:
                listed.append("count(*) AS sluice_n")
            (row,) = self.run(f"SELECT {', '.join(listed)} FROM {ROWS}")
            rows = row.get("sluice_n", rows)
            for number, (key, name) in enumerate(expressions):
                metrics[key][name] = plain(row[f"q{number}"])
        return {key: {_ROWS: rows, **each} for key, each in metrics.items()}

    def _count_of_user_queries(self, queries: Mapping[str, str]) -> None:
        """Count the rows of many queries in one query, so that they are planned and their tables loaded together.

        If a batch fails, its queries are counted one by one later, so that each has its own answer or error.
        """
        keys = list(queries)
        for start in range(0, len(keys), _USER_QUERIES_AT_ONCE):
            batch = keys[start : start + _USER_QUERIES_AT_ONCE]
            counts = (
                f"SELECT {number} AS sluice_query, count(*) AS n FROM ({queries[key]}\n) AS sluice_bad"
                for number, key in enumerate(batch)
            )
            try:
                rows = self.run(" UNION ALL ".join(counts)) if len(batch) > 1 else []
            except Exception:
                continue
            for row in rows:
                metrics = {"failed": int(row["n"])}
                self._answers[batch[int(row["sluice_query"])]] = ScanAnswer(metrics=metrics)

    def _completed_or_error(self, answer: ScanAnswer, key: str, query: CheckQuery) -> ScanAnswer:
        try:
            return self._completed(answer, key, query)
        except Exception as error:
            message = self.error_message(error)
            if message is None:
                raise
            return ScanAnswer(error=message)

    def _completed(self, answer: ScanAnswer, key: str, query: CheckQuery) -> ScanAnswer:
        """Run the queries that cannot be combined: groups, a user's query, and the sample of bad rows."""
        metrics = dict(answer.metrics)
        source, shown = None, query.show
        if query.user_query:
            source = f"({query.user_query}\n) AS sluice_bad"
            if "failed" not in metrics:
                metrics["failed"] = int(self.run(f"SELECT count(*) AS n FROM {source}")[0]["n"])
        elif query.groups:
            groups = (self.with_other_rows and query.groups_with_other_rows) or query.groups
            metrics["failed"] = self._count_bad_rows(groups, self.disjoint_views.get(key, [ROWS]))
            source = f"({groups}) AS sluice_bad"
            if query.group_keys:
                shown = self._sample_columns(query.show)
                source = self._rows_of_groups(groups, query, shown)
        elif query.bad:
            source, shown = f"{ROWS} WHERE {query.bad}", self._sample_columns(query.show)
        sample = self._sample(source, shown, query) if source and metrics["failed"] and self.sample_rows else []
        return ScanAnswer(metrics=metrics, sample=sample)

    def _count_bad_rows(self, groups: str, views: Sequence[str]) -> int:
        """Add up the bad rows of all groups, view by view: each view needs a smaller hash table of keys."""
        parts = (f"SELECT {BAD_ROWS} FROM ({groups.replace(f'FROM {ROWS}', f'FROM {view}')}) AS part" for view in views)
        (row,) = self.run(f"SELECT coalesce(sum({BAD_ROWS}), 0) AS n FROM ({' UNION ALL '.join(parts)}) AS parts")
        return int(row["n"])

    def _rows_of_groups(self, groups: str, query: CheckQuery, shown: Sequence[str]) -> str:
        """Return a source of the rows of the first bad groups, with other live rows of the table where they count."""
        columns = ", ".join(self.sql.column(name) for name in shown)
        only = f" WHERE {query.where}" if query.where else ""
        views = [ROWS, OTHER_ROWS] if self.with_other_rows and query.groups_with_other_rows else [ROWS]
        rows = " UNION ALL ".join(f"SELECT {columns} FROM {view}{only}" for view in views)
        keys = {f"sluice_key_{number}": self.sql.column(name) for number, name in enumerate(query.group_keys)}
        named = ", ".join(f"{column} AS {key}" for key, column in keys.items())
        first = ", ".join(f"{column} NULLS FIRST" for column in keys.values())
        bad = f"SELECT {named} FROM ({groups}) AS sluice_groups ORDER BY {first} LIMIT {self.sample_rows}"
        same = " AND ".join(f"{column} IS NOT DISTINCT FROM {key}" for key, column in keys.items())
        return f"({rows}) AS sluice_rows_of_groups JOIN ({bad}) AS sluice_bad ON {same}"

    def _sample_columns(self, first: list[str]) -> list[str]:
        others = [name for name, kind in self.types.items() if kind_of(kind) in _SAMPLED_KINDS]
        return list(dict.fromkeys([*first, *others]))[:_SAMPLE_COLUMNS]

    def _sample(self, source: str, shown: list[str], query: CheckQuery) -> Rows:
        """Return the first bad rows, ordered by the shown columns, so that every engine returns the same ones."""
        listed = ", ".join(self.sql.column(name) for name in shown)
        order = [name for name in shown if name in self.types and kind_of(self.types[name]) in _SAMPLED_KINDS]
        order = order[:_ORDERED_COLUMNS]
        ordered = ", ".join(f"{self.sql.column(name)} NULLS FIRST" for name in order)
        shows_groups = query.groups and not query.group_keys
        columns = "*" if query.user_query else f"{listed}, {BAD_ROWS}" if shows_groups else listed
        by = f" ORDER BY {ordered}" if ordered and not query.user_query else ""
        rows = self.run(f"SELECT {columns} FROM {source}{by} LIMIT {self.sample_rows}")
        return [
            {
                ("rows" if name == BAD_ROWS else name): plain(value)
                for name, value in list(row.items())[:_SAMPLE_COLUMNS]
            }
            for row in rows
        ]
