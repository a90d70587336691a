"""The two suites of the measurement, as Sluice's checks and as handwritten SQL.

`PROVABLE` has 12 checks that metadata can answer; `MIXED` has 8 more, as people write them.
"""

from typing import Any

PROVABLE: list[dict[str, Any]] = [
    {"row_count": {"min": 1}},
    {"not_null": "id"},
    {"not_null": "customer"},
    {"not_null": "amount"},
    {"not_null_proportion": {"column": "note", "min": 0.9}},
    {"at_least_one": "note"},
    {"accepted_range": {"column": "id", "min": 0}},
    {"accepted_range": {"column": "qty", "min": 1, "max": 100}},
    {"accepted_range": {"column": "amount", "min": 0, "max": 1000}},
    {"accepted_range": {"column": "created", "min": "2024-01-01", "max": "2024-12-31"}},
    {"min_in_range": {"column": "qty", "min": 1}},
    {"max_in_range": {"column": "amount", "max": 1000}},
]
_MORE: list[dict[str, Any]] = [
    {"accepted_values": {"column": "status", "values": ["new", "paid", "sent", "done", "void"]}},
    {"match_regex": {"column": "code", "pattern": "^[A-Z]{2}-[0-9]{6}$"}},
    {"unique": "id"},
    {"distinct_count": {"column": "customer", "min": 100000}},
    {"mean_in_range": {"column": "amount", "min": 499, "max": 501}},
    {"compare_columns": {"left": "created", "operator": "<=", "right": "updated"}},
    {"string_length": {"column": "code", "min": 9, "max": 9}},
    {"stddev_in_range": {"column": "amount", "min": 280, "max": 300}},
]
MIXED = [*PROVABLE, *_MORE]
ONE_SCAN = [{"match_regex": {"column": "code", "pattern": "^[A-Z]{2}-[0-9]{6}$"}}]
TWENTY_SCANS: list[dict[str, Any]] = [
    *ONE_SCAN,
    *({"not_accepted_values": {"column": "status", "values": [f"bad{n}"], "where": "qty > 0"}} for n in range(5)),
    *(
        {"compare_columns": {"left": "created", "operator": "<=", "right": "updated", "where": f"qty >= {n}"}}
        for n in range(5)
    ),
    *({"string_length": {"column": "code", "min": 1, "max": 20 + n}} for n in range(5)),
    *({"mean_in_range": {"column": "amount", "min": 499, "max": 501 + n}} for n in range(4)),
]
"""The one scan check and 19 more, over the columns that such checks usually concern."""

_PROVABLE_SQL = [
    "count(*)",
    "count_if(id IS NULL)",
    "count_if(customer IS NULL)",
    "count_if(amount IS NULL)",
    "count_if(note IS NULL)",
    "count(note)",
    "min(id)",
    "min(qty)",
    "max(qty)",
    "min(amount)",
    "max(amount)",
    "min(created)",
    "max(created)",
]
_PUSHED_SQL = [
    "count(*)", "count(id)", "count(customer)", "count(amount)", "count(note)", "min(id)", "min(qty)", "max(qty)",
    "min(amount)", "max(amount)", "min(created)", "max(created)",
]  # fmt: skip
"""The same aggregates in the form that Iceberg's aggregate push-down answers from metadata."""
_MORE_SQL = [
    "count_if(status NOT IN ('new', 'paid', 'sent', 'done', 'void'))",
    "count_if(NOT {regex})",
    "count(DISTINCT id)",
    "count(DISTINCT customer)",
    "avg(amount)",
    "count_if(created > updated)",
    "count_if(length(code) <> 9)",
    "stddev_samp(amount)",
]
_REGEX = {
    "duckdb": "regexp_matches(code, '^[A-Z]{2}-[0-9]{6}$')",
    "spark": "code RLIKE '^[A-Z]{2}-[0-9]{6}$'",
}


def by_hand(suite: str, engine: str) -> list[str]:
    """Return the aggregates that a person would write for a suite."""
    if suite == "provable":
        return _PUSHED_SQL if engine == "spark" else _PROVABLE_SQL
    more = [each.replace("{regex}", _REGEX[engine]) for each in _MORE_SQL]
    return [*_PROVABLE_SQL, *more]
