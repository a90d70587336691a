"""A check of the table's schema."""

from typing import Literal

from pydantic import Field

from sluice.checks.base import Check, Finding
from sluice.facts import TableFacts

_SYNONYMS = {
    "bigint": "long",
    "integer": "int",
    "smallint": "int",
    "tinyint": "int",
    "bool": "boolean",
    "real": "float",
    "timestamp_ntz": "timestamp",
}
"""Spark's and other names for Iceberg's types. Spark's `timestamp` has a zone: it is Iceberg's timestamptz."""


def iceberg_type(name: str) -> str:
    """Return Iceberg's name of a type, whitespace aside."""
    plain = name.strip().lower().replace(" ", "")
    return _SYNONYMS.get(plain, plain)


class Schema(Check):
    """The table must have these columns with these types, and no others unless `allow_extra` says so."""

    check: Literal["schema"] = "schema"
    columns: dict[str, str] = Field(min_length=1)
    allow_extra: bool = False

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def expected(self) -> str:
        listed = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"{'at least ' if self.allow_extra else ''}{listed}"

    def prove(self, facts: TableFacts) -> Finding:
        problems = [
            f"{name} is {facts.types[name]}" if name in facts.types else f"{name} is missing"
            for name, kind in self.columns.items()
            if facts.types.get(name, "").replace(" ", "") != iceberg_type(kind)
        ]
        if not self.allow_extra:
            problems += [f"{name} is extra" for name in facts.types if name not in self.columns]
        return Finding(passed=not problems, observed="; ".join(problems) or "as stated")
