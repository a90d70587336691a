"""What metadata proves, and what it must leave undecided, where a careless planner would be wrong."""

from typing import Any

import pytest

from sluice.checks import REGISTRY, expand
from sluice.checks.base import Check
from sluice.facts import ColumnFacts, FileFacts, TableFacts


def check(written: dict[str, Any]) -> Check:
    fields = expand(written)[0]
    return REGISTRY[fields["check"]].model_validate(fields)


def file(rows: int = 10, **facts: Any) -> FileFacts:
    return FileFacts(rows=rows, columns={"c": ColumnFacts(**facts)} if facts else {})


def table(*files: FileFacts, kind: str = "int", row_deletes: bool = False) -> TableFacts:
    return TableFacts(types={"c": kind, "d": "string"}, added=list(files), live=list(files), row_deletes=row_deletes)


def proven(written: dict[str, Any], facts: TableFacts) -> tuple[bool, Any] | None:
    finding = check(written).prove(facts)
    return None if finding is None else (finding.passed, finding.observed)


NOT_NULL = {"not_null": "c"}
SHARE = {"not_null_proportion": {"column": "c", "min": 0.9}}
COUNT = {"row_count": {"min": 15, "max": 25}}
RANGE = {"accepted_range": {"column": "c", "min": 0, "max": 9}}
DATES = {"accepted_range": {"column": "c", "min": "2024-01-01", "max": "2024-12-31"}}


@pytest.mark.parametrize(
    ("written", "facts", "answer"),
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
        (RANGE, table(file(nulls=0, lower=0, upper=10)), None),  # a bound is no value: it proves no fail
        (RANGE, table(file(nulls=0, lower=0, upper=None)), None),
        (RANGE, table(file(nulls=10)), (True, 0)),  # only nulls, so no bounds
        (RANGE, table(file(nulls=None)), None),
        (RANGE, table(file(nulls=0, lower=0.0, upper=9.0, nans=None), kind="double"), None),  # NaN is in no bounds
        (RANGE, table(file(nulls=0, lower=0.0, upper=9.0, nans=1), kind="double"), None),
        (RANGE, table(file(nulls=0, lower=0.0, upper=9.0, nans=0), kind="double"), (True, 0)),
        (RANGE, table(file(nulls=0, lower=1, upper=2), row_deletes=True), (True, 0)),
        (RANGE, table(file(nulls=0, lower="1", upper="2"), kind="string"), None),  # cut at 16 characters
        (DATES, table(file(nulls=0, lower="2024-02-01", upper="2024-02-02"), kind="date"), (True, 0)),
        (DATES, table(file(nulls=0, lower="2023-02-01", upper="2024-02-02"), kind="date"), None),
        (DATES, table(file(nulls=0, lower=5, upper=6)), None),  # a date is no number
        ({"unique": "c"}, table(file(nulls=0, lower=1, upper=1)), None),
        ({"accepted_values": {"column": "c", "values": [1]}}, table(file(nulls=0, lower=1, upper=1)), None),
    ],
)
def test_proofs(written: dict[str, Any], facts: TableFacts, answer: tuple[bool, Any] | None) -> None:
    assert proven(written, facts) == answer


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
    facts = TableFacts(types={"c": "int"}, added=[file(nulls=0)], live=[file(nulls=0), file(nulls=2)])
    assert proven({"not_null": "c"}, facts) == (True, 0)
    assert proven({"not_null": {"column": "c", "scope": "table"}}, facts) == (False, 2)
    assert proven({"row_count": {"min": 20, "scope": "table"}}, facts) == (True, 20)
