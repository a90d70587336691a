"""The terms of `partition_by` and `sort_by`: columns, and Iceberg's transforms of columns."""

import re
from typing import Annotated

from pydantic import AfterValidator

_PARTITION = re.compile(r"(?:(year|month|day|hour)s?\((.+)\))|(?:(bucket|truncate)\((\d+),\s*(.+)\))|([^()]+)")
_ORDER = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.I)


def _valid_partition(term: str) -> str:
    if not _PARTITION.fullmatch(term.strip()):
        raise ValueError(
            f"{term!r} is not a partition: write column, year(column), month(column), day(column), "
            "hour(column), bucket(16, column) or truncate(4, column)"
        )
    return term.strip()


def partition_parts(term: str) -> tuple[str, int | None, str]:
    """Split a partition term into its transform (`identity` for a bare column), argument and column."""
    match = _PARTITION.fullmatch(term)
    assert match, term
    if match[1]:
        return match[1], None, match[2].strip()
    if match[3]:
        return match[3], int(match[4]), match[5].strip()
    return "identity", None, match[6].strip()


def _valid_order(term: str) -> str:
    match = _ORDER.fullmatch(term.strip())
    if not match or not _PARTITION.fullmatch(match[1]):
        raise ValueError(
            f"{term!r} is not an order: write column, column desc, day(column) or bucket(16, column), "
            "with `nulls first` or `nulls last` where it matters"
        )
    return term.strip()


def order_parts(term: str) -> tuple[str, str, str]:
    """Split a sort term into its column or transform, `ASC` or `DESC`, and `FIRST`, `LAST` or nothing."""
    match = _ORDER.fullmatch(term)
    assert match, term
    return match[1], (match[2] or "asc").upper(), (match[3] or "").upper()


PartitionTerm = Annotated[str, AfterValidator(_valid_partition)]
SortTerm = Annotated[str, AfterValidator(_valid_order)]
