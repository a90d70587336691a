"""Queries over generated rows in memory, by a DuckDB without access to files, network and settings."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from generation.judging import ROW_NUMBER, Query, Row
from lakehouse.source_files import arrow_table
from sluice.checks.base import ROWS

if TYPE_CHECKING:
    import duckdb

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
_LOCK = "SET TimeZone = 'UTC'; SET enable_external_access = false; SET lock_configuration = true"


class DuckDBRows:
    """A `RowEngine` (`generation/judging.py`): one database, which contains one set of rows at a time."""

    @cached_property
    def _connection(self) -> "duckdb.DuckDBPyConnection":
        import duckdb  # noqa: PLC0415  # slow to import

        connection = duckdb.connect(":memory:", config=_CONFIG)
        connection.execute(_LOCK)
        return connection

    @contextmanager
    def load(
        self, rows: Sequence[Row], types: Mapping[str, str], others: Mapping[str, Mapping[str, Sequence[Any]]]
    ) -> Iterator[Query]:
        """Yield a function that queries the view `ROWS`, and one view for each other table, by name."""
        import pyarrow as pa  # noqa: PLC0415  # slow to import

        numbers = pa.array(range(len(rows)), pa.int64())
        views = {ROWS: arrow_table(rows, types).append_column(ROW_NUMBER, numbers)}
        for view, columns in others.items():
            longest = max(map(len, columns.values()))
            views[view] = pa.table({name: [*each, *[None] * (longest - len(each))] for name, each in columns.items()})
        for view, table in views.items():
            self._connection.register(view, table)
        try:
            yield self._run
        finally:
            for view in views:
                self._connection.unregister(view)

    def _run(self, sql: str) -> list[dict[str, Any]]:
        answered: list[dict[str, Any]] = self._connection.sql(sql).to_arrow_table().to_pylist()
        return answered
