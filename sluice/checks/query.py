"""A check in the user's own SQL."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from sluice.checks.base import Check, Scan, Scope


class Sql(Check):
    """A query that returns the bad rows. It sees every table as on the audited branch, and can only read."""

    shorthand = "query"

    check: Literal["sql"] = "sql"
    query: str = Field(min_length=1)
    name: str = ""
    scope: Scope = "table"

    @field_validator("query")
    @classmethod
    def _one_query(cls, query: str) -> str:
        return query.strip().rstrip(";").strip()

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def expected(self) -> str:
        return f"no rows from {self.name or ' '.join(self.query.split())}"

    def scan(self, types: Mapping[str, str]) -> Scan:
        return Scan(query=self.query)
