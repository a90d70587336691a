"""Checks of strings. A null passes all of them."""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator, model_validator

from sluice.checks.base import between, require_range
from sluice.checks.rows import ColumnRows
from sluice.checks.values import enclosed
from sluice.metadata.statistics import FileStatistics
from sluice.sql import regex
from sluice.sql.dialect import Dialect

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_STRINGS = ("string",)
FORMATS = {
    "email": rf"^[A-Za-z0-9._%+\-]+@{_LABEL}(?:\.{_LABEL})+$",
    "url": r"^(?:https?|ftp)://[^\s/?#]+(?:[/?#][^\s]*)?$",
    "uuid": r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
    "date": r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])$",
    "ipv4": r"^(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])$",
}
"""The regular expression of each format. A date need not exist in the calendar."""


class _String(ColumnRows):
    kinds = _STRINGS


class NotEmptyString(_String):
    """No string may be empty. A string of spaces is not empty."""

    aliases = {"dbt_utils.not_empty_string": {}}
    proof = "the lower bound of a file is not an empty string"

    check: Literal["not_empty_string"] = "not_empty_string"

    @property
    def demand(self) -> str:
        return "no empty string"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"{sql.column(self.column)} = ''"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        lower = file.column(self.column).lower
        return 0 if file.values(self.column) == 0 or (isinstance(lower, str) and lower) else None


class _Pattern(_String):
    shorthand = "pattern"
    pattern: str = Field(min_length=1)


class _Regex(_Pattern):
    @field_validator("pattern")
    @classmethod
    def _a_pattern(cls, pattern: str) -> str:
        why = regex.problem(pattern)
        if why:
            raise ValueError(why)
        return pattern


class MatchRegex(_Regex):
    """Every string must match a regular expression in Java's syntax, at any position."""

    aliases = {"expect_column_values_to_match_regex": {"regex": "pattern"}, "match_regex_pattern": {}}

    check: Literal["match_regex"] = "match_regex"

    @property
    def demand(self) -> str:
        return f"strings that match {self.pattern}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"NOT ({sql.matches(sql.column(self.column), self.pattern)})"


class NotMatchRegex(_Regex):
    """No string may match a regular expression in Java's syntax, at any position."""

    aliases = {"expect_column_values_to_not_match_regex": {"regex": "pattern"}}

    check: Literal["not_match_regex"] = "not_match_regex"

    @property
    def demand(self) -> str:
        return f"no strings that match {self.pattern}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return sql.matches(sql.column(self.column), self.pattern)


class _Like(_Pattern):
    @field_validator("pattern")
    @classmethod
    def _a_pattern(cls, pattern: str) -> str:
        if re.search(r"(?<!\\)(?:\\\\)*\\(?![%_\\])", pattern):
            raise ValueError(f"{pattern!r} is not a pattern: a backslash may only precede %, _ or another backslash")
        return pattern


class MatchLike(_Like):
    """Every string must match a LIKE pattern: `%` is any string, `_` any character, a backslash escapes them."""

    aliases = {"expect_column_values_to_match_like_pattern": {"like_pattern": "pattern"}}
    proof = "the pattern is a prefix and `%`, and the bounds of a file have this prefix"

    check: Literal["match_like"] = "match_like"

    @property
    def demand(self) -> str:
        return f"strings like {self.pattern}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"NOT ({sql.like(sql.column(self.column), self.pattern)})"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        if file.values(self.column) == 0:
            return 0
        prefix = self.pattern[:-1]
        bounds = enclosed(file.column(self.column), types[self.column])
        if bounds is None or self.pattern[-1] != "%" or any(each in prefix for each in "%_\\"):
            return None
        return 0 if all(bound.startswith(prefix) for bound in bounds) else None


class NotMatchLike(_Like):
    """No string may match a LIKE pattern."""

    aliases = {"expect_column_values_to_not_match_like_pattern": {"like_pattern": "pattern"}}

    check: Literal["not_match_like"] = "not_match_like"

    @property
    def demand(self) -> str:
        return f"no strings like {self.pattern}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return sql.like(sql.column(self.column), self.pattern)


class ValidFormat(_String):
    """Every string must have a format: an email address, a URL, a UUID, a date, or an IPv4 address."""

    shorthand = "format"
    aliases = {f"valid_{name}": {"+format": name} for name in FORMATS}

    check: Literal["valid_format"] = "valid_format"
    format: Literal["email", "url", "uuid", "date", "ipv4"]

    @property
    def demand(self) -> str:
        return f"strings in the format {self.format}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"NOT ({sql.matches(sql.column(self.column), FORMATS[self.format])})"


class StringLength(_String):
    """The length of every string, in Unicode code points, must lie in a range."""

    aliases = {
        "expect_column_value_lengths_to_be_between": {"min_value": "min", "max_value": "max"},
        "string_length_between": {"min_v": "min", "max_v": "max"},
    }

    check: Literal["string_length"] = "string_length"
    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _a_range(self) -> "StringLength":
        require_range(self.min, self.max)
        return self

    @property
    def demand(self) -> str:
        return f"{between(self.min, self.max)} characters"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        length = f"length({sql.column(self.column)})"
        tests = [f"{length} < {self.min}"] if self.min is not None else []
        tests += [f"{length} > {self.max}"] if self.max is not None else []
        return " OR ".join(tests)
