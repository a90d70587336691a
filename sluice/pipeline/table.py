"""A table of a pipeline: its layout, its checks, and the treatment of rows that fail them."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator, model_validator

from sluice.base_model import StrictModel
from sluice.checks.base import check_location, check_problems
from sluice.checks.registry import AnyCheck
from sluice.identifiers import suggestion
from sluice.pipeline.source import TextOptions
from sluice.pipeline.table_layout import PartitionTerm, SortTerm, order_parts, partition_parts
from sluice.pipeline.table_properties import property_problem


class Table(StrictModel):
    """A table that the run may change, with the checks that it must pass."""

    partition_by: list[PartitionTerm] = Field(default_factory=list)
    sort_by: list[SortTerm] = Field(default_factory=list)
    """Sort order of a new table, for this write and all later ones."""
    properties: TextOptions = Field(default_factory=dict)
    comment: str = ""
    comments: dict[str, str] = Field(default_factory=dict)
    """Comments on columns, by name."""
    checks: list[AnyCheck] = Field(default_factory=list)
    on_bad_rows: Literal["fail", "quarantine"] = "fail"
    """Treatment of rows that break a check: the whole run is not published, or they go to `<table>__quarantine`."""
    max_bad_rows: int | None = Field(default=None, ge=0)
    max_bad_proportion: float | None = Field(default=None, ge=0, le=1)
    """Caps of `on_bad_rows: quarantine`. A run with more bad rows is not published."""

    @field_validator("properties")
    @classmethod
    def _properties_delete_no_files(cls, properties: dict[str, str]) -> dict[str, str]:
        problems = filter(None, (property_problem(key, value) for key, value in properties.items()))
        if problem := next(problems, None):
            raise ValueError(problem)
        return properties

    @model_validator(mode="after")
    def _capped(self) -> "Table":
        caps = [cap for cap in (self.max_bad_rows, self.max_bad_proportion) if cap is not None]
        if self.on_bad_rows == "quarantine" and not caps:
            raise ValueError("on_bad_rows: quarantine needs a limit: give max_bad_rows, max_bad_proportion or both")
        if self.on_bad_rows == "fail" and caps:
            raise ValueError("max_bad_rows and max_bad_proportion go with `on_bad_rows: quarantine`")
        return self


def column_problems(name: str, table: Table, types: Mapping[str, str]) -> list[str]:
    """List the checks, layout terms and comments of a pipeline that do not fit the columns of its table.

    Args:
        types: the Iceberg type of each column.
    """
    problems = [
        f"{check_location(check)}{name}: {why}" for check in table.checks for why in check_problems(check, types)
    ]
    terms = [*table.partition_by, *(order_parts(term)[0] for term in table.sort_by)]
    named = [partition_parts(term)[2] for term in terms]
    return problems + [
        f"{name}: the pipeline names the column {column!r}, which the table does not have{suggestion(column, types)}"
        for column in dict.fromkeys([*named, *table.comments])
        if column not in types
    ]
