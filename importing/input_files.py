"""Input of an import: the files by kind, and options that the files do not state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from importing.imported import SourceText


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import that the files do not state."""

    namespace: str | None = None
    """The namespace of the tables of dbt's models, of Soda's data sets and of suites without a table."""
    table: str | None = None
    """The table of a suite."""
    scope: str = "table"
    """The rows that checks cover. In dbt, Great Expectations and Soda, these are all rows of the table."""
    dialect: str | None = None
    """The dialect of the SQL in the files; None for Spark's."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Variables of dbt, in addition to those of `dbt_project.yml`."""
    target: str | None = None
    """The name of dbt's target, such as `prod`."""


@dataclass(frozen=True)
class Files:
    """The files of an import, by kind."""

    dbt: list[SourceText] = field(default_factory=list)
    soda: list[SourceText] = field(default_factory=list)
    suites: list[SourceText] = field(default_factory=list)
    macros: list[SourceText] = field(default_factory=list)
    singular: list[SourceText] = field(default_factory=list)
    projects: list[SourceText] = field(default_factory=list)
    others: list[SourceText] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    """Files that may be of any of these kinds but cannot be read, with the reasons."""
