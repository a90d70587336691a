"""Importing formats of dates from Great Expectations: exactly the values that Python's `strptime` reads are good."""

import json
import re
from datetime import datetime

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files
from importing.strftime import strptime_pattern

_TEXTS = (
    "2020-01-05", "2020-1-5", "2020-01- 5", "2020-02-29", "2021-02-29", "2020-13-01", "2020-00-10", "0000-01-01",
    "2020-01-05 ", "2020-01-05\n", "x2020-01-05", "20-01-05", "2020-01-05T10:11:12", "2020-01-05t1:2:3",
    "2020-01-05T24:00:00", "2020-01-05T10:60:00", "2020-01-05T10:11:60", "2020-01-05  10:11", "2020-01-05 10:11",
    "29/02", "31/04", "1/1", "20200105", "2020115", "1045", "104", "100%", "2020", "31", "10:61", "60", "",
)  # fmt: skip
_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d/%m", "%Y%m%d", "%m%d", "%H%M", "%Y%%", "%Y", "%d", "%S",
    "%H:%M",
)  # fmt: skip


def imported(format_: object, **options: object) -> ImportedChecks:
    kwargs = {"column": "a", "strftime_format": format_, **options}
    written = {"type": "expect_column_values_to_match_strftime_format", "kwargs": kwargs}
    files = Files(suites=[SourceText("orders.json", json.dumps({"name": "orders", "expectations": [written]}))])
    return import_files(files, ImportOptions(namespace="shop"))


def is_read_by_python(text: str, format_: str) -> bool:
    try:
        datetime.strptime(text, format_)
    except ValueError:
        return False
    return True


def is_good(text: str, format_: str) -> bool:
    """Evaluate the condition by Python's regular expressions."""
    pattern, order = strptime_pattern(format_)
    match = re.search(pattern.replace(r"\z", r"\Z"), text)
    if match is None or not {"m", "d"} <= {*order}:
        return match is not None
    parts = {"Y": "1900", **dict(zip(order, match.groups(), strict=True))}
    return is_read_by_python("-".join(parts[name].strip() for name in "Ymd"), "%Y-%m-%d")


@pytest.mark.parametrize("format_", _FORMATS)
def test_what_python_reads_is_good(format_: str) -> None:
    assert [each for each in _TEXTS if is_good(each, format_)] == [
        each for each in _TEXTS if is_read_by_python(each, format_)
    ]


def test_a_format_is_a_condition_on_each_value() -> None:
    (check,) = imported("%Y-%m").checks["shop.orders"]
    expression = r"coalesce(`a` RLIKE '(?i)\\A(?>((?!0000)\\d\\d\\d\\d)\\-(1[0-2]|0[1-9]|[1-9]))\\z', TRUE)"
    assert check == {"expression_is_true": {"expression": expression, "scope": "table"}}


def test_a_day_is_one_of_its_month() -> None:
    (check,) = imported("%d.%m.%Y %H:%M:%S", mostly=0.9).checks["shop.orders"]
    expression = check["expression_is_true"]["expression"]
    groups = re.findall(r"regexp_extract\(`a`, '[^']*', (\d)\)", expression)
    assert groups == ["3", "2", "1"]
    assert "AND try_cast(concat_ws('-', regexp_extract(" in expression
    assert check["expression_is_true"]["mostly"] == 0.9


@pytest.mark.parametrize(
    ("format_", "reason"),
    [
        ("%Y-%b-%d", "'%b' in the format '%Y-%b-%d' has no equivalent here"),
        ("%Y-%Y", "'%Y' in the format '%Y-%Y' has no equivalent here"),
        ("%Y %", "'%' in the format '%Y %' has no equivalent here"),
        ("%H%S%M", "digits after the seconds of the format '%H%S%M' have no equivalent here"),
        ("%Y年", "'年' in a format of dates has no equivalent here"),
        (None, "'strftime_format' is missing"),
        (["%Y"], "'strftime_format' is not text: ['%Y']"),
    ],
)
def test_a_format_that_is_not_known_is_listed(format_: object, reason: str) -> None:
    result = imported(format_)
    assert not result.checks
    assert [each.reason for each in result.left] == [reason]
