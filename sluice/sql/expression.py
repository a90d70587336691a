"""Validate and translate SQL that users write in checks.

The parser is imported at its first use, because the import takes a tenth of a second.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any


def expression_problem(text: str) -> str | None:
    """Return the reason why a text is not one condition in Spark SQL, or None."""
    result: str | None = _parsing().expression_problem(text)
    return result


def columns_of(text: str) -> list[str]:
    """Return the columns that a condition reads, in order."""
    result: list[str] = _parsing().columns_of(text)
    return result


def determinism_problem(text: str) -> str | None:
    """Return the reason why a valid condition may give another answer when it is evaluated again, or None."""
    result: str | None = import_module("sluice.sql.determinism").determinism_problem(text)
    return result


def query_problem(text: str, views: tuple[str, ...] = ()) -> str | None:
    """Return the reason why a text is not one query that only reads catalog tables and these views, or None."""
    result: str | None = _parsing().query_problem(text, views)
    return result


def statement_problem(text: str) -> str | None:
    """Return the reason why a text is not one statement that changes tables of the catalog, or None."""
    result: str | None = _parsing().statement_problem(text)
    return result


def without_comments(text: str) -> str:
    """Return SQL without its comments, because Spark and the validation could disagree on where one ends."""
    result: str = _parsing().without_comments(text)
    return result


def tables_of(text: str) -> list[str]:
    """Return the full names of the tables that a query reads, except its own common table expressions."""
    result: list[str] = _parsing().tables_of(text)
    return result


def unknown_columns(query: str, tables: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that a query names but none of its tables has. Names of tables are in lower case."""
    result: list[str] = import_module("sluice.sql.query_columns").unknown_columns(query, tables)
    return result


def returned_columns(query: str, tables: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the names of the columns that a query returns, or None if they are uncertain."""
    result: list[str] | None = import_module("sluice.sql.query_columns").returned_columns(query, tables)
    return result


def to_duckdb(text: str, types: Mapping[str, str]) -> str | None:
    """Return the condition in DuckDB's SQL if it certainly has the same meaning as in Spark SQL, else None."""
    result: str | None = _parsing().to_duckdb(text, types)
    return result


def likely_duckdb(text: str) -> str:
    """Return an expression in DuckDB's SQL. Its meaning may differ from Spark's, so it is only for previews."""
    result: str = _parsing().likely_duckdb(text)
    return result


@cache
def _parsing() -> Any:
    return import_module("sluice.sql.parsing")
