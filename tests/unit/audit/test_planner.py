"""Proofs from metadata, and cases that must stay undecided although a careless planner would decide them wrongly."""

import struct
from dataclasses import replace
from datetime import date, datetime, timezone
from typing import Any

import pytest

from lakehouse.iceberg.statistics import bound, deletes_may_apply
from sluice.audit.answers import evaluation
from sluice.audit.files import disjoint_groups, files_with_keys
from sluice.audit.scan_groups import ScanGroup, scan_groups
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY, expand
from sluice.checks.rows import RowCheck
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.metadata.statistics import ColumnStatistics, FileStatistics, TableStatistics
from sluice.sql.dialect import DUCKDB


def check(written: Any) -> Check:
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate(fields)


def file(rows: int = 10, deletes: bool = False, **recorded: Any) -> FileStatistics:
    return FileStatistics(rows=rows, columns={"c": ColumnStatistics(**recorded)} if recorded else {}, deletes=deletes)


def table(*files: FileStatistics, kind: str = "int", row_deletes: bool = False) -> TableStatistics:
    live = [replace(each, deletes=each.deletes or row_deletes, path=str(n)) for n, each in enumerate(files)]
    return TableStatistics(types={"c": kind, "d": "string"}, added=live, live=live, now=NOW)


def group_of(check: Check, statistics: TableStatistics) -> ScanGroup:
    (group,) = scan_groups(AuditedTable("n.t", [check], statistics), {0: check}, DUCKDB)[0]
    return group


def proven(written: Any, statistics: TableStatistics) -> tuple[bool, Any] | None:
    result = check(written).prove(statistics)
    return None if result is None else (result.passed, result.observed)


NOW = datetime(2024, 3, 1, tzinfo=timezone.utc)
NOT_NULL = {"not_null": "c"}
SHARE = {"not_null_proportion": {"column": "c", "min": 0.9}}
COUNT = {"row_count": {"min": 15, "max": 25}}
RANGE = {"accepted_range": {"column": "c", "min": 0, "max": 9}}
TEXTS = {"accepted_range": {"column": "c", "min": "b", "max": "bz"}}
ONE = {"accepted_values": {"column": "c", "values": [1]}}
LIKE = {"match_like": {"column": "c", "pattern": "ab%"}}
MINIMUM = {"min_in_range": {"column": "c", "min": 4}}
MAXIMUM = {"max_in_range": {"column": "c", "max": 10}}
MEAN = {"mean_in_range": {"column": "c", "min": 5, "max": 8}}
FRESH = {"freshness": {"column": "c", "max_age": "2d"}}
DATES = {"accepted_range": {"column": "c", "min": "2024-01-01", "max": "2024-12-31"}}


@pytest.mark.parametrize(
    ("written", "statistics", "answer"),
    [
        (NOT_NULL, table(file(nulls=0), file(nulls=0)), (True, 0)),
        (NOT_NULL, table(file(nulls=0), file(nulls=3)), (False, 3)),
        (NOT_NULL, table(file(nulls=0), file(nulls=None)), None),
        (NOT_NULL, table(file(nulls=0), file()), None),  # a column added after the file was written
        (NOT_NULL, table(file(nulls=0), row_deletes=True), (True, 0)),
        (NOT_NULL, table(file(nulls=3), row_deletes=True), None),  # the nulls may be deleted
        (NOT_NULL, table(), (True, 0)),
        (NOT_NULL, table(file(rows=0)), (True, 0)),
        (SHARE, table(file(nulls=1)), (True, 0.9)),
        (SHARE, table(file(nulls=1), file(nulls=2)), (False, 0.85)),
        (SHARE, table(file(nulls=0), row_deletes=True), None),
        (SHARE, table(), (True, "no rows")),
        (COUNT, table(file(), file()), (True, 20)),
        (COUNT, table(file()), (False, 10)),
        (COUNT, table(file(), file(), row_deletes=True), None),
        (RANGE, table(file(nulls=0, lower=0, upper=9)), (True, 0)),
        (RANGE, table(file(nulls=0, lower=0, upper=10)), None),  # a bound need not occur: it proves no fail
        (RANGE, table(file(nulls=0, lower=0, upper=None)), None),
        (RANGE, table(file(nulls=10)), (True, 0)),  # only nulls, so no bounds
        (RANGE, table(file(nulls=None)), None),
        (RANGE, table(file(nulls=0, lower=0.0, upper=9.0, nans=None), kind="double"), None),  # bounds ignore NaN
        (RANGE, table(file(nulls=0, lower=0.0, upper=9.0, nans=1), kind="double"), None),
        (RANGE, table(file(nulls=0, lower=0.0, upper=9.0, nans=0), kind="double"), (True, 0)),
        (RANGE, table(file(nulls=0, lower=1, upper=2), row_deletes=True), (True, 0)),
        (RANGE, table(file(nulls=1, lower=10, upper=12)), (False, 9)),  # all values are outside, exactly
        (RANGE, table(file(nulls=1, lower=10, upper=12), row_deletes=True), None),  # these may be deleted
        (RANGE, table(file(nulls=None, lower=10, upper=12)), None),
        (RANGE, table(file(nulls=0, lower=None, upper=None)), None),  # metrics mode `counts`
        (RANGE, table(file(nulls=0, lower=10.0, upper=12.0, nans=None), kind="double"), None),
        (DATES, table(file(nulls=0, lower=date(2024, 2, 1), upper=date(2024, 2, 2)), kind="date"), (True, 0)),
        (DATES, table(file(nulls=0, lower=date(2023, 2, 1), upper=date(2024, 2, 2)), kind="date"), None),
        (TEXTS, table(file(nulls=0, lower="bcdefghijklmnopq", upper="bcdefghijklmnopr"), kind="string"), (True, 0)),
        (TEXTS, table(file(nulls=0, lower="bcdefghijklmnopq", upper="c"), kind="string"), None),
        (TEXTS, table(file(nulls=0, lower="d", upper="e"), kind="string"), (False, 10)),
        ({"unique": "c"}, table(file(nulls=0, lower=1, upper=1)), None),
        (ONE, table(file(nulls=0, lower=1, upper=1)), (True, 0)),
        (ONE, table(file(nulls=2, lower=2, upper=2)), (False, 8)),
        (ONE, table(file(nulls=0, lower=1, upper=2)), None),
        (ONE, table(), (True, 0)),
        ({"accepted_values": {"column": "c", "values": [1, 2, 3]}}, table(file(nulls=0, lower=1, upper=3)), (True, 0)),
        ({"accepted_values": {"column": "c", "values": [1, 3]}}, table(file(nulls=0, lower=1, upper=3)), None),
        ({"accepted_values": {"column": "c", "values": [1], "all_present": True}}, table(file(lower=1, upper=1)), None),
        ({"not_accepted_values": {"column": "c", "values": [5]}}, table(file(nulls=0, lower=1, upper=3)), (True, 0)),
        ({"not_accepted_values": {"column": "c", "values": [2]}}, table(file(nulls=0, lower=1, upper=3)), None),
        ({"not_accepted_values": {"column": "c", "values": [2]}}, table(file(nulls=4, lower=2, upper=2)), (False, 6)),
        ({"not_nan": "c"}, table(file(nulls=0, nans=2), kind="double"), (False, 2)),
        ({"not_nan": "c"}, table(file(nulls=0, nans=None), kind="double"), None),
        ({"not_empty_string": "c"}, table(file(nulls=0, lower="a"), kind="string"), (True, 0)),
        ({"not_empty_string": "c"}, table(file(nulls=0, lower=""), kind="string"), None),
        (LIKE, table(file(nulls=0, lower="ab", upper="abd"), kind="string"), (True, 0)),
        (LIKE, table(file(nulls=0, lower="ab", upper="ac"), kind="string"), None),
        ({"at_least_one": "c"}, table(file(nulls=10), file(nulls=9)), (True, "1 values")),
        ({"at_least_one": "c"}, table(file(nulls=10), file(nulls=9), row_deletes=True), None),
        ({"not_constant": "c"}, table(file(nulls=0, lower=1, upper=2), file(lower=3, upper=3)), None),
        (
            {"not_constant": "c"},
            table(file(nulls=0, lower=1, upper=2), file(nulls=0, lower=3, upper=3)),
            (True, "different values"),
        ),
        ({"not_constant": "c"}, table(file(nulls=0, lower=1, upper=2)), None),  # bounds need not occur
        ({"not_constant": "c"}, table(file(nulls=0, lower=1, upper=1)), (False, "1 value")),
        (MINIMUM, table(file(nulls=0, lower=5, upper=8)), (True, "between 5 and 8")),
        (MINIMUM, table(file(nulls=0, lower=3, upper=8)), None),  # the bound 3 need not occur
        (MINIMUM, table(file(nulls=0, lower=1, upper=3)), (False, "between 1 and 3")),
        (MINIMUM, table(file(nulls=0, lower=1, upper=3), row_deletes=True), None),
        (MINIMUM, table(file(nulls=10), file(nulls=0, lower=5, upper=5)), (True, 5)),
        (MAXIMUM, table(file(nulls=0, lower=1, upper=3), file(nulls=0, lower=5, upper=8)), (True, "between 5 and 8")),
        (MAXIMUM, table(file(nulls=0, lower=12, upper=30)), (False, "between 12 and 30")),
        (
            MEAN,
            table(file(nulls=0, lower=1, upper=2), file(rows=30, nulls=0, lower=8, upper=9)),
            (True, "between 6.25 and 7.25"),
        ),
        (MEAN, table(file(nulls=0, lower=1, upper=20)), None),
        (
            {"sum_in_range": {"column": "c", "max": 90}},
            table(file(nulls=1, lower=1, upper=10)),
            (True, "between 9 and 90"),
        ),
        (
            {"sum_in_range": {"column": "c", "max": 90}},
            table(file(nulls=0, nans=0, lower=1.0, upper=2.0), kind="double"),
            None,
        ),
        (
            FRESH,
            table(file(nulls=0, lower=date(2024, 2, 28), upper=date(2024, 2, 28)), kind="date"),
            (True, "at least 2024-02-28"),
        ),
        (FRESH, table(file(nulls=0, lower=date(2024, 1, 1), upper=date(2024, 2, 29)), kind="date"), None),
        (
            FRESH,
            table(file(nulls=0, lower=date(2024, 1, 1), upper=date(2024, 2, 1)), kind="date"),
            (False, "at most 2024-02-01"),
        ),
        ({"relationships": {"column": "c", "to": "a.b", "field": "x"}}, table(file(nulls=10)), (True, 0)),
    ],
)
def test_proofs(written: dict[str, Any], statistics: TableStatistics, answer: tuple[bool, Any] | None) -> None:
    assert proven(written, statistics) == answer


def test_bounds_that_do_not_count() -> None:
    exclusive = {"accepted_range": {"column": "c", "min": 0, "max": 9, "inclusive": False}}
    assert proven(exclusive, table(file(nulls=0, lower=0, upper=8))) is None
    assert proven(exclusive, table(file(nulls=0, lower=1, upper=8))) == (True, 0)


@pytest.mark.parametrize(
    ("columns", "extra", "observed"),
    [
        ({"c": "int", "d": "string"}, False, None),
        ({"c": "INTEGER", "d": "string"}, False, None),
        ({"c": "int"}, True, None),
        ({"c": "int"}, False, "d is extra"),
        ({"c": "bigint", "d": "string", "e": "int"}, False, "c is int; e is missing"),
    ],
)
def test_schema(columns: dict[str, str], extra: bool, observed: str | None) -> None:
    answer = proven({"schema": {"columns": columns, "allow_extra": extra}}, table())
    assert answer == ((True, "as stated") if observed is None else (False, observed))


def test_each_scope_has_its_files() -> None:
    statistics = TableStatistics(types={"c": "int"}, added=[file(nulls=0)], live=[file(nulls=0), file(nulls=2)])
    assert proven({"not_null": "c"}, statistics) == (True, 0)
    assert proven({"not_null": {"column": "c", "scope": "table"}}, statistics) == (False, 2)
    assert proven({"row_count": {"min": 20, "scope": "table"}}, statistics) == (True, 20)


def test_where_leaves_proven_bad_rows_undecided() -> None:
    some = {"not_null": {"column": "c", "where": "d = 'x'"}}
    assert proven(some, table(file(nulls=0))) == (True, 0)
    assert proven(some, table(file(nulls=3))) is None


def test_only_files_that_are_undecided_must_be_read() -> None:
    inside, across, beyond = (file(nulls=0, lower=low, upper=high) for low, high in ((1, 2), (5, 15), (20, 30)))
    statistics = table(inside, across, beyond)
    ranged = check(RANGE)
    assert isinstance(ranged, RowCheck)
    assert [each.path for each in ranged.undecided_in(statistics)] == ["1"]
    assert [ranged.known_in(each, statistics.types) for each in statistics.added] == [0, None, 10]
    result = evaluation(group_of(ranged, statistics), 0, ScanAnswer(metrics={"rows": 10, "failed": 4}))
    assert (result.level, result.observed) == ("fail", 14)


def test_a_share_of_rows_counts_files_that_were_not_read() -> None:
    shared = check({"accepted_range": {"column": "c", "max": 9, "mostly": 0.5}})
    statistics = table(file(rows=10, nulls=0, lower=1, upper=2), file(rows=10, nulls=0, lower=5, upper=15))
    answer = ScanAnswer(metrics={"rows": 10, "failed": 10})
    assert evaluation(group_of(shared, statistics), 0, answer).level == "pass"
    deleted = table(file(rows=10, nulls=0, lower=1, upper=2, deletes=True), file(nulls=0, lower=5, upper=15))
    assert isinstance(shared, RowCheck)
    assert len(shared.undecided_in(deleted)) == 2  # the rows of the first file must be counted


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("int", (5).to_bytes(4, "little"), 5),
        ("long", (5).to_bytes(4, "little"), 5),  # written as int, promoted since
        ("long", (-5).to_bytes(8, "little", signed=True), -5),
        ("double", struct.pack("<f", 0.5), 0.5),  # written as float, promoted since
        ("double", struct.pack("<d", float("nan")), None),
        ("date", (19000).to_bytes(4, "little"), date(2022, 1, 8)),
        ("timestamp", (19000).to_bytes(4, "little"), None),  # promoted from date, which has another width
        ("timestamptz", (0).to_bytes(8, "little"), datetime(1970, 1, 1, tzinfo=timezone.utc)),
        ("string", b"abc", "abc"),
        ("string", b"\xff\xfe", None),
        ("boolean", b"\x01", True),
        ("list<int>", b"\x01", None),
        ("int", None, None),
    ],
)
def test_bounds_are_read_by_the_present_type(kind: str, raw: bytes | None, value: Any) -> None:
    assert bound(raw, kind) == value


def test_files_that_cannot_hold_a_key_are_left_out() -> None:
    added = [file(nulls=0, lower=10, upper=20)]
    files = [file(nulls=0, lower=low, upper=high) for low, high in ((1, 9), (9, 10), (20, 25), (21, 25), (None, None))]
    assert [each.column("c").lower for each in files_with_keys(files, "c", added, "c")] == [9, 20, None]
    assert files_with_keys(files, "c", [file(nulls=None)], "c") == files
    assert files_with_keys(files, "c", [file(nulls=10)], "c") == []


def test_bad_rows_of_a_file_with_deletes_are_counted_again() -> None:
    check_nulls = check(NOT_NULL)
    assert isinstance(check_nulls, RowCheck)
    statistics = table(file(nulls=3, deletes=True), file(nulls=0, deletes=True), file(nulls=2))
    assert [each.path for each in check_nulls.undecided_in(statistics)] == ["0"]


def test_keys_of_two_parts_never_meet() -> None:
    def parts(*bounds: tuple[Any, Any], kind: str = "int") -> list[list[Any]]:
        files = [replace(file(lower=low, upper=high), path=str(n)) for n, (low, high) in enumerate(bounds)]
        return [[each.column("c").lower for each in part] for part in disjoint_groups(files, "c", kind)]

    assert parts((1, 2), (3, 4), (5, 6)) == [[1], [3], [5]]
    assert parts((5, 6), (1, 2)) == [[1], [5]]
    assert parts((1, 3), (3, 4), (5, 6)) == [[1, 3], [5]]  # the bound may be a key of both files
    assert parts((1, 9), (2, 3), (4, 5)) == [[1, 2, 4]]  # the second ends before the first does
    assert parts((1, 2), (None, None)) == [[1, None]]
    assert parts((1.0, 2.0), (3.0, 4.0), kind="double") == [[1.0, 3.0]]  # bounds ignore NaN


def test_which_deletes_reach_a_file() -> None:
    assert deletes_may_apply(3, (3, -1)) and not deletes_may_apply(4, (3, -1))
    assert deletes_may_apply(2, (-1, 3)) and not deletes_may_apply(3, (-1, 3))
