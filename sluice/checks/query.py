"""Checks that users write in SQL."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from sluice.checks.base import Check, CheckQuery, TableReference
from sluice.checks.rows import Condition, RowCheck
from sluice.metadata.statistics import Scope
from sluice.sql.dialect import Dialect, NeedsSpark
from sluice.sql.expression import columns_of, query_problem, tables_of, without_comments


class ExpressionIsTrue(RowCheck):
    """A condition must be true for every row. A condition that is null counts as false."""

    aliases = {"dbt_utils.expression_is_true": {}, "forall": {"criteria": "expression"}}
    shorthand = "expression"

    check: Literal["expression_is_true"] = "expression_is_true"
    expression: Condition

    @property
    def own_columns(self) -> list[str]:
        return columns_of(self.expression)

    @property
    def demand(self) -> str:
        return self.expression

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"coalesce(NOT {sql.translated(self.expression, types)}, TRUE)"


class Sql(Check):
    """A query must return no rows: it returns the bad rows. It reads every table on the audited branch."""

    shorthand = "query"

    check: Literal["sql"] = "sql"
    query: str = Field(min_length=1)
    name: str = ""
    scope: Scope = "table"

    @field_validator("query")
    @classmethod
    def _one_query(cls, query: str) -> str:
        plain = query.strip().rstrip(";").strip()
        why = query_problem(plain)
        if why:
            raise ValueError(why)
        return without_comments(plain)

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def references(self) -> list[TableReference]:
        """The tables that the query reads. A name without a namespace belongs to the query itself."""
        names = {name.lower(): name for name in tables_of(self.query)}
        return [TableReference(table=name) for name in names.values() if "." in name]

    @property
    def tables_read(self) -> list[str]:
        return tables_of(self.query)

    @property
    def expected(self) -> str:
        return f"no rows from {self.name or ' '.join(self.query.split())}"

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        if sql.name != "spark":
            raise NeedsSpark("a query of one's own")
        return CheckQuery(user_query=self.query)
