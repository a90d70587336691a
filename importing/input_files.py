"""What is imported: the files by what they are, and what they do not say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from importing.imported import SourceText


@dataclass(frozen=True)
class ImportOptions:
    """What the files do not say."""

    namespace: str | None = None
    """The namespace of the tables of dbt's models, of Soda's data sets and of suites without a table."""
    table: str | None = None
    """The table that a suite is about."""
    scope: str = "table"
    """Which rows checks are about; in dbt, Great Expectations and Soda, all rows of the table."""
    dialect: str | None = None
    """The dialect of the SQL in the files; None for Spark's."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """dbt's variables, beside those of `dbt_project.yml`."""
    target: str | None = None
    """The name of dbt's target, such as `prod`."""


@dataclass(frozen=True)
class Files:
    """The files of an import, by what they are."""

    dbt: list[SourceText] = field(default_factory=list)
    soda: list[SourceText] = field(default_factory=list)
    suites: list[SourceText] = field(default_factory=list)
    macros: list[SourceText] = field(default_factory=list)
    singular: list[SourceText] = field(default_factory=list)
    projects: list[SourceText] = field(default_factory=list)
    others: list[SourceText] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    """Files that might be any of these and cannot be read, with the reasons."""
