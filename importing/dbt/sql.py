"""Translate the SQL in files of dbt, from the dialect of `--dialect` to Spark's.

Without a dialect, the SQL must be Spark's already. Text in double quotes is then refused, because it is a value in
Spark and a column in most other systems.
"""

import re
from collections.abc import Mapping
from typing import Any

from importing.imported import NotCarriedOver
from importing.sql_text import is_time, number, plain_name, spark_condition, spark_query
from sluice.identifiers import quoted
from sluice.sql.tokens import SqlProblem, tokens

CONDITIONS = (
    "row_condition", "compare_row_condition", "from_condition", "to_condition", "exclusion_condition", "condition",
)  # fmt: skip
_EXPRESSIONS = (
    "expression", "compare_expression", "column", "column_name", "compare_column_name", "field", "sort_column",
    "date_column_name", "timestamp_column", "lower_bound_column", "upper_bound_column", "column_a", "column_b",
    "group_by", "group_by_columns", "compare_group_by", "partition_by", "column_list", "columns", "column_names",
    "combination_of_columns", "compare_columns", "exclude_columns", "min_value", "max_value", "value", "sum_total",
    "tolerance", "tolerance_percent", "step",
)  # fmt: skip
_OF_NAMES = re.compile(r"expect_(table_columns?_|column_to_exist)")
"""Tests whose lists of columns are names, not SQL."""
_ONE_NAME = re.compile(r'"([^"`]+)"')


class DbtSql:
    """Translator of SQL texts from one dialect."""

    def __init__(self, dialect: str | None) -> None:
        self.dialect = dialect

    def condition(self, text: Any) -> str:
        """Return a condition as Spark SQL.

        Raises:
            NotCarriedOver: it does not parse, or may mean something else.
        """
        return spark_condition(self._plain(str(text)), self.dialect)

    def query(self, text: str) -> str:
        """Return a query as Spark SQL.

        Raises:
            NotCarriedOver: it does not parse, or may mean something else.
        """
        return spark_query(self._plain(text), self.dialect)

    def expression(self, value: Any) -> Any:
        """Return an expression, the name of a column, or a list of these, as Spark SQL.

        Raises:
            NotCarriedOver: one does not parse, or may mean something else.
        """
        if isinstance(value, list):
            return [self.expression(each) for each in value]
        if (
            not isinstance(value, str)
            or value.strip().lower() == "count(*)"
            or number(value) is not None
            or is_time(value)
            or not value.strip()
        ):
            return value
        name = plain_name(value)
        if name is not None:
            return quoted(name) if _ONE_NAME.fullmatch(value.strip()) else value
        return self.condition(value) if self.dialect else self._plain(value)

    def arguments(self, test: str, given: Mapping[str, Any], column: str | None) -> dict[str, Any]:
        """Return the arguments of a known test, with SQL translated to Spark's.

        Args:
            column: the column that the test belongs to. The `expression` of the test continues it.

        Raises:
            NotCarriedOver: an argument does not parse, or may mean something else.
        """
        own = test.rpartition(".")[2].lower()
        arguments = {str(key): value for key, value in given.items()}
        for key, value in arguments.items():
            if key.lower() in CONDITIONS and value:
                arguments[key] = self.condition(value)
            elif key.lower() in _EXPRESSIONS and not _OF_NAMES.match(own) and not (key == "expression" and column):
                arguments[key] = self.expression(value)
        name = column and plain_name(column)
        if name and isinstance(text := arguments.get("expression"), str):
            arguments["expression"] = self._rest(name, text)
        return arguments

    def _rest(self, column: str, text: str) -> str:
        """Return the part of a condition after the name of its column."""
        if not self.dialect:
            return self._plain(text)
        mark = quoted(column) if self.dialect in _BACKTICKS else f'"{column}"'
        whole = self.condition(f"{mark} {text}")
        if not whole.startswith(f"{quoted(column)} "):
            raise NotCarriedOver(f"{text[:80]!r} does not follow the name of the column as SQL of {self.dialect}")
        return whole.removeprefix(f"{quoted(column)} ")

    def _plain(self, text: str) -> str:
        """Prepare a text for translation. Without a dialect, requote a single name and refuse other double quotes.

        Raises:
            NotCarriedOver: there is no dialect, and the text has double quotes.
        """
        if self.dialect:
            return text
        if one := _ONE_NAME.fullmatch(text.strip()):
            return quoted(one[1])
        if double := _double_quoted(text):
            raise NotCarriedOver(
                f"{double[:60]} is a text in Spark SQL, and a column in other dialects: name the dialect with --dialect"
            )
        return text


_BACKTICKS = ("spark", "spark2", "databricks", "hive", "bigquery", "mysql", "doris", "starrocks", "clickhouse")
"""Dialects that quote names with backticks, as Spark does."""


def _double_quoted(text: str) -> str | None:
    try:
        return next((token.text for token in tokens(text) if token.text.startswith('"')), None)
    except SqlProblem:
        return None  # the validation of the text refuses it
