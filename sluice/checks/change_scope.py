"""Checks of the scope of a change, which compare the live files of tables before and after a run."""

from typing import Annotated, ClassVar, Literal

from pydantic import ByteSize, Field, model_validator

from sluice.checks.base import Check, Evaluation, between, judge_size, pass_or_fail, require_range
from sluice.metadata.statistics import ChangeStatistics, StatisticsNeed, TableStatistics
from sluice.sizes import format_list

Count = Annotated[int, Field(ge=0)]


class _ChangeCheck(Check):
    needs = frozenset({StatisticsNeed.CHANGE})
    proof = "always"

    @property
    def column_names(self) -> list[str]:
        return []


class AppendOnly(_ChangeCheck):
    """The run must only append: no existing row is changed or removed."""

    shorthand = "severity"
    check: Literal["append_only"] = "append_only"

    @property
    def expected(self) -> str:
        return "appends only"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        operations = list(dict.fromkeys(statistics.change.operations))
        change = statistics.change
        good = not change.deleted_rows and not change.deletes_by_value and set(operations) <= {"append"}
        return pass_or_fail(good, "+".join(operations) or "nothing written")


class DeletedRows(_ChangeCheck):
    """At most `max` rows may be removed. A rewritten row counts as removed; `net` subtracts the added rows."""

    shorthand = "max"
    check: Literal["deleted_rows"] = "deleted_rows"
    max: Count
    net: bool = False

    @property
    def expected(self) -> str:
        return f"at most {self.max} rows removed{', net' if self.net else ''}"

    def statistics_problem(self, statistics: TableStatistics) -> str | None:
        unknown = statistics.change.deletes_by_value
        return "equality deletes were written: how many rows they delete is not known" if unknown else None

    def prove(self, statistics: TableStatistics) -> Evaluation:
        change = statistics.change
        removed = max(0, change.deleted_rows - change.added_rows) if self.net else change.deleted_rows
        return pass_or_fail(removed <= self.max, removed)


class ChangedPartitions(_ChangeCheck):
    """Only these partitions may change, or at most `max` partitions; Iceberg's partition paths name them."""

    needs = frozenset({StatisticsNeed.CHANGE, StatisticsNeed.PARTITIONS})
    shorthand = "only"
    observes_values = True
    check: Literal["changed_partitions"] = "changed_partitions"
    only: list[str] | None = None
    """Partition paths such as `flight_month=2013-01`, or `day=2024-01-31/region=EU`."""
    max: Count | None = None

    @model_validator(mode="after")
    def _something(self) -> "ChangedPartitions":
        if self.only is None and self.max is None:
            raise ValueError("give only, max or both")
        return self

    @property
    def expected(self) -> str:
        parts = [f"only {', '.join(self.only)}"] if self.only is not None else []
        return ", ".join(parts + ([f"at most {self.max} partitions"] if self.max is not None else []))

    def prove(self, statistics: TableStatistics) -> Evaluation:
        changed = statistics.change.partitions
        others = [each for each in changed if self.only is not None and each not in self.only]
        many = self.max is not None and len(changed) > self.max
        return pass_or_fail(not others and not many, _some(others or changed))


class ChangedTables(_ChangeCheck):
    """The run may change only these tables."""

    shorthand = "only"
    check: Literal["changed_tables"] = "changed_tables"
    only: list[str] = Field(min_length=1)

    @property
    def expected(self) -> str:
        return f"only {', '.join(self.only)}"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        others = [each for each in statistics.change.tables if each not in self.only]
        return pass_or_fail(not others, _some(others or statistics.change.tables))


class _Amount(_ChangeCheck):
    shorthand = "max"
    unit: ClassVar[str]

    def amount(self, change: ChangeStatistics) -> int:
        raise NotImplementedError

    def limits(self) -> tuple[int | None, int | None]:
        raise NotImplementedError

    @property
    def expected(self) -> str:
        return f"{between(*self.limits())} {self.unit}"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        amount, (low, high) = self.amount(statistics.change), self.limits()
        return judge_size(
            amount,
            too_few=low is not None and amount < low,
            too_many=high is not None and amount > high,
            requeued=statistics.requeued,
        )


class AddedFiles(_Amount):
    """The number of data files that the run adds must lie in a range."""

    unit = "files"
    check: Literal["added_files"] = "added_files"
    min: Count | None = None
    max: Count | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "AddedFiles":
        require_range(self.min, self.max)
        return self

    def limits(self) -> tuple[int | None, int | None]:
        return self.min, self.max

    def amount(self, change: ChangeStatistics) -> int:
        return change.added_files


class AddedBytes(_Amount):
    """The total size of the data files that the run adds must lie in a range, such as `10MB` or `1GiB`."""

    unit = "bytes"
    check: Literal["added_bytes"] = "added_bytes"
    min: ByteSize | None = None
    max: ByteSize | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "AddedBytes":
        require_range(self.min, self.max)
        return self

    def limits(self) -> tuple[int | None, int | None]:
        return self.min, self.max

    def amount(self, change: ChangeStatistics) -> int:
        return change.added_bytes


class PartitioningUnchanged(_ChangeCheck):
    """The table must have the partition spec that it has on `main`."""

    shorthand = "severity"
    check: Literal["partitioning_unchanged"] = "partitioning_unchanged"

    @property
    def expected(self) -> str:
        return "the partition spec of main"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        return _same(statistics.change.created, statistics.change.partition_spec)


class SortOrderUnchanged(_ChangeCheck):
    """The table must have the sort order that it has on `main`."""

    shorthand = "severity"
    check: Literal["sort_order_unchanged"] = "sort_order_unchanged"

    @property
    def expected(self) -> str:
        return "the sort order of main"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        return _same(statistics.change.created, statistics.change.sort_order)


def _same(created: bool, pair: tuple[str, str]) -> Evaluation:
    if created:
        return pass_or_fail(True, "a new table")
    before, after = pair
    return pass_or_fail(
        before == after, f"was {before or 'none'}, is {after or 'none'}" if before != after else "unchanged"
    )


def _some(names: object) -> str:
    listed = list(names) if isinstance(names, list | tuple) else []
    return format_list(listed, 10) or "none"
