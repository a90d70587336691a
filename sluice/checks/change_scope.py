"""Checks of the blast radius: what a run did to the table and to the lake, exact from snapshots and manifests."""

from typing import Annotated, ClassVar, Literal

from pydantic import ByteSize, Field, model_validator

from sluice.audit.statistics import ChangeStatistics, TableStatistics
from sluice.checks.base import Check, Finding, a_range, between, passed_if

Count = Annotated[int, Field(ge=0)]


class _Blast(Check):
    needs = frozenset({"change"})
    proof = "always"

    @property
    def column_names(self) -> list[str]:
        return []


class AppendOnly(_Blast):
    """The run must only append: no row of before is changed or removed."""

    shorthand = "severity"
    check: Literal["append_only"] = "append_only"

    @property
    def expected(self) -> str:
        return "appends only"

    def prove(self, facts: TableStatistics) -> Finding:
        operations = list(dict.fromkeys(facts.change.operations))
        good = all(each == "append" for each in operations) and not facts.change.deleted_rows
        return passed_if(good, "+".join(operations) or "nothing written")


class DeletedRows(_Blast):
    """At most so many rows may be removed. A rewritten row is removed and added; `net` sets one against the other."""

    shorthand = "max"
    check: Literal["deleted_rows"] = "deleted_rows"
    max: Count
    net: bool = False

    @property
    def expected(self) -> str:
        return f"at most {self.max} rows removed{', net' if self.net else ''}"

    def prove(self, facts: TableStatistics) -> Finding:
        change = facts.change
        removed = max(0, change.deleted_rows - change.added_rows) if self.net else change.deleted_rows
        return passed_if(removed <= self.max, removed)


class ChangedPartitions(_Blast):
    """Only these partitions may change, or at most so many, written as Iceberg writes their paths."""

    needs = frozenset({"change", "partitions"})
    shorthand = "only"
    check: Literal["changed_partitions"] = "changed_partitions"
    only: list[str] | None = None
    """Such as `flight_month=2013-01`, or `day=2024-01-31/region=EU`."""
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

    def prove(self, facts: TableStatistics) -> Finding:
        changed = facts.change.partitions
        others = [each for each in changed if self.only is not None and each not in self.only]
        many = self.max is not None and len(changed) > self.max
        return passed_if(not others and not many, _some(others or changed))


class ChangedTables(_Blast):
    """The run may change only these tables, of all that are on the branch."""

    shorthand = "only"
    check: Literal["changed_tables"] = "changed_tables"
    only: list[str] = Field(min_length=1)

    @property
    def expected(self) -> str:
        return f"only {', '.join(self.only)}"

    def prove(self, facts: TableStatistics) -> Finding:
        others = [each for each in facts.change.tables if each not in self.only]
        return passed_if(not others, _some(others or facts.change.tables))


class _Amount(_Blast):
    shorthand = "max"
    words: ClassVar[str]

    def amount(self, change: ChangeStatistics) -> int:
        raise NotImplementedError

    def limits(self) -> tuple[int | None, int | None]:
        raise NotImplementedError

    @property
    def expected(self) -> str:
        return f"{between(*self.limits())} {self.words}"

    def prove(self, facts: TableStatistics) -> Finding:
        found, (low, high) = self.amount(facts.change), self.limits()
        return passed_if((low is None or found >= low) and (high is None or found <= high), found)


class AddedFiles(_Amount):
    """The run must add a number of data files in a range."""

    words = "files"
    check: Literal["added_files"] = "added_files"
    min: Count | None = None
    max: Count | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "AddedFiles":
        a_range(self.min, self.max)
        return self

    def limits(self) -> tuple[int | None, int | None]:
        return self.min, self.max

    def amount(self, change: ChangeStatistics) -> int:
        return change.added_files


class AddedBytes(_Amount):
    """The run must add data files of a size in a range, all together; `10MB` and `1GiB` are understood."""

    words = "bytes"
    check: Literal["added_bytes"] = "added_bytes"
    min: ByteSize | None = None
    max: ByteSize | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "AddedBytes":
        a_range(self.min, self.max)
        return self

    def limits(self) -> tuple[int | None, int | None]:
        return self.min, self.max

    def amount(self, change: ChangeStatistics) -> int:
        return change.added_bytes


class PartitioningUnchanged(_Blast):
    """The table must be partitioned as on `main`."""

    shorthand = "severity"
    check: Literal["partitioning_unchanged"] = "partitioning_unchanged"

    @property
    def expected(self) -> str:
        return "the partition spec of main"

    def prove(self, facts: TableStatistics) -> Finding:
        return _same(facts.change.created, facts.change.partition_spec)


class SortOrderUnchanged(_Blast):
    """The table must have the sort order that it has on `main`."""

    shorthand = "severity"
    check: Literal["sort_order_unchanged"] = "sort_order_unchanged"

    @property
    def expected(self) -> str:
        return "the sort order of main"

    def prove(self, facts: TableStatistics) -> Finding:
        return _same(facts.change.created, facts.change.sort_order)


def _same(created: bool, pair: tuple[str, str]) -> Finding:
    if created:
        return passed_if(True, "a new table")
    before, after = pair
    return passed_if(
        before == after, f"was {before or 'none'}, is {after or 'none'}" if before != after else "unchanged"
    )


def _some(names: object) -> str:
    listed = list(names) if isinstance(names, list | tuple) else []
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "") or "none"
