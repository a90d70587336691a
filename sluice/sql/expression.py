"""What people write in SQL themselves. Its parser is imported for those who did: that takes a tenth of a second."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def expression_problem(text: str) -> str | None:
    """Return why a text is not one condition in Spark SQL, or None."""
    found: str | None = _parsing().expression_problem(text)
    return found


def columns_of(text: str) -> list[str]:
    """Return the columns that a condition names, in order."""
    found: list[str] = _parsing().columns_of(text)
    return found


def query_problem(text: str) -> str | None:
    """Return why a text is not one query that only reads what is on the branch, or None."""
    found: str | None = _parsing().query_problem(text)
    return found


def tables_of(text: str) -> list[str]:
    """Return the full names of the tables that a query reads, without those that it defines itself."""
    found: list[str] = _parsing().tables_of(text)
    return found


def to_duckdb(text: str, types: Mapping[str, str]) -> str | None:
    """Return the condition for DuckDB if it is certain to mean what Spark understands, else None."""
    found: str | None = _parsing().to_duckdb(text, types)
    return found


def _parsing() -> Any:
    return import_module("sluice.sql.parsing")
