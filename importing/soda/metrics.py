"""Convert the metrics of SodaCL to drafts of checks."""

from collections.abc import Mapping
from typing import Any

from importing.drafts import Draft, Target, native
from importing.expectations.tables import measured
from importing.imported import NotCarriedOver
from importing.soda.text import Metric, as_list, column_arguments, is_zero, simple_range, threshold_sql
from importing.soda.values import (
    MISSING,
    VALIDITY,
    format_pattern,
    missing_condition,
    valid_condition,
)
from importing.sql_text import number, plain_name

_AGGREGATES = {
    "avg": ("avg({})", "mean_in_range"),
    "sum": ("sum({})", "sum_in_range"),
    "min": ("min({})", "min_in_range"),
    "max": ("max({})", "max_in_range"),
    "stddev": ("stddev({})", "stddev_in_range"),
    "stddev_samp": ("stddev_samp({})", "stddev_in_range"),
    "stddev_pop": ("stddev_pop({})", None),
    "variance": ("variance({})", None),
    "var_samp": ("var_samp({})", None),
    "var_pop": ("var_pop({})", None),
    "avg_length": ("avg(length({}))", None),
    "min_length": ("min(length({}))", None),
    "max_length": ("max(length({}))", None),
    "distinct_count": ("count(DISTINCT {})", "distinct_count"),
    "unique_count": ("count(DISTINCT {})", None),
    "cardinality": ("count(DISTINCT {})", "distinct_count"),
}
"""The aggregate of each metric of one column, and the check with the same meaning, if there is one."""
_BOUNDS = {"valid min": "min", "valid max": "max"}
_LENGTHS = {"valid min length": "min", "valid max length": "max"}
_PERCENT = {"missing_percentage": "missing_percent", "invalid_percentage": "invalid_percent"}


def metric_sql(metric: Metric, settings: Mapping[str, Any], target: Target) -> str:
    """Return the SQL expression whose value over all rows is the metric.

    Raises:
        NotCarriedOver: the metric has no equivalent.
    """
    name = _PERCENT.get(metric.name, metric.name)
    if name == "row_count":
        return "count(*)"
    columns = column_arguments(metric)
    if not columns:
        raise NotCarriedOver(f"the metric {metric.name!r} is not known, or its column is missing")
    missing = missing_condition(columns[0], settings)
    if name in _AGGREGATES:
        column = f"CASE WHEN NOT ({missing}) THEN {columns[0]} END" if _has(settings, MISSING) else columns[0]
        return _AGGREGATES[name][0].format(column)
    if name == "percentile" and len(columns) == 2:
        return f"percentile({columns[0]}, {metric.arguments[1]})"
    if name in ("missing_count", "missing_percent"):
        return _counted(name, missing)
    if name in ("invalid_count", "invalid_percent", "valid_count", "valid_percent"):
        valid = valid_condition(columns[0], settings)
        which = f"NOT ({missing}) AND " + (f"NOT ({valid})" if name.startswith("invalid") else f"({valid})")
        return _counted(name, which)
    if name in ("duplicate_count", "duplicate_percent"):
        listed, present = ", ".join(columns), " AND ".join(f"{each} IS NOT NULL" for each in columns)
        repeated = (
            f"(SELECT count(*) FROM (SELECT {listed} FROM {target.rows} AS rows WHERE {present} GROUP BY {listed} "
            "HAVING count(*) > 1) AS repeated)"
        )
        percent = " * 100.0 / nullif(count(*), 0)" if name == "duplicate_percent" else ""
        return f"coalesce(max({repeated}){percent}, 0)"  # without rows there are no duplicates
    raise NotCarriedOver(f"the metric {metric.name!r} has no equivalent here")


def _counted(name: str, condition: str) -> str:
    counted = f"count_if({condition})"
    return f"coalesce({counted} * 100.0 / nullif(count(*), 0), 0)" if name.endswith("percent") else counted


def _has(settings: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(name in settings for name in names)


def metric_draft(metric: Metric, settings: Mapping[str, Any], target: Target) -> Draft:
    """Return the draft of a metric with the threshold that passes.

    Raises:
        NotCarriedOver: the metric has no threshold, or no equivalent.
    """
    if metric.threshold is None:
        raise NotCarriedOver("the check has no threshold")
    good = threshold_sql(metric.threshold)
    query = measured(metric_sql(metric, settings, target), f"coalesce({good}, FALSE)", target)
    return Draft(query, _native(metric, settings, target))


def alert_query(metric: Metric, settings: Mapping[str, Any], target: Target, alert: str) -> str:
    """Return the query of an alert, such as `> 5`. It returns a row if the alert is raised."""
    raised = threshold_sql(alert)
    return measured(metric_sql(metric, settings, target), f"NOT coalesce({raised}, TRUE)", target)


def _native(metric: Metric, settings: Mapping[str, Any], target: Target) -> list[dict[str, Any]]:
    """Return the check with the same meaning as a metric with its threshold; empty if there is none."""
    assert metric.threshold is not None
    limits, names = simple_range(metric.threshold), [plain_name(each) for each in metric.arguments]
    kind = _PERCENT.get(metric.name, metric.name).partition("_")[0]
    if limits is None or None in names or (_has(settings, MISSING) and kind not in ("missing", "invalid")):
        return []
    if kind in ("missing", "invalid"):
        return _native_of_rows(metric, settings, limits)
    if metric.name in ("row_count", "distinct_count", "cardinality"):
        return _native_count(names, limits)
    if metric.name in _AGGREGATES:
        name = _AGGREGATES[metric.name][1]
        return native(name, column=names[0], min=limits[0], max=limits[1]) if name and not limits[2] else []
    if metric.name == "duplicate_count" and is_zero(metric.threshold) and not target.where:
        return _native_unique(names)
    return []


def _native_count(names: list[str | None], limits: tuple[float | None, float | None, bool]) -> list[dict[str, Any]]:
    low, high, strict = limits
    if any(value is not None and value != int(value) for value in (low, high)):
        return []
    bounds = {"min": None if low is None else int(low) + strict, "max": None if high is None else int(high) - strict}
    if any(value is not None and value < 0 for value in bounds.values()):
        return []
    return native("distinct_count" if names else "row_count", column=names[0] if names else None, **bounds)


def _native_unique(names: list[str | None]) -> list[dict[str, Any]]:
    if len(names) == 1:
        return native("unique", column=names[0])
    present = " AND ".join(f"`{name}` IS NOT NULL" for name in names)
    return native("unique_combination_of_columns", columns=names, where=present)


def _native_validity(column: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the check of values equivalent to one setting of validity, or to a range; None if there is none."""
    given = {name: settings[name] for name in VALIDITY if name in settings}
    for check, names in (("accepted_range", _BOUNDS), ("string_length", _LENGTHS)):
        bounds = {names[name]: number(value) for name, value in given.items() if name in names}
        if bounds and len(bounds) == len(given) and None not in bounds.values():
            return native(check, column=column, **bounds)[0]
    return _native_setting(column, *next(iter(given.items()))) if len(given) == 1 else None


def _native_setting(column: str, name: str, value: Any) -> dict[str, Any] | None:
    if name in ("valid values", "invalid values"):
        check = "accepted_values" if name == "valid values" else "not_accepted_values"
        return native(check, column=column, values=as_list(value))[0]
    if name == "valid format" and str(value).lower() in ("email", "uuid"):
        return native("valid_format", column=column, format=str(value).lower())[0]
    if name in ("valid format", "valid regex"):
        pattern = format_pattern(str(value)) if name == "valid format" else str(value)
        return native("match_regex", column=column, pattern=pattern)[0]
    return None


def _native_of_rows(
    metric: Metric, settings: Mapping[str, Any], limits: tuple[float | None, float | None, bool]
) -> list[dict[str, Any]]:
    """Return the row check equivalent to a limit on the number or share of missing or invalid values."""
    low, high, strict = limits
    kind, _, unit = _PERCENT.get(metric.name, metric.name).partition("_")
    if high is None or (low or 0) > 0 or (high == 0 and strict):
        return []
    sign, percent = ">=" if strict else ">", "%" if unit == "percent" else ""
    limit = {"fail_if": f"{sign} {high}{percent}"} if high else {}
    column = f"`{plain_name(metric.arguments[0])}`"
    missing = missing_condition(column, settings)
    if kind == "missing":
        if not _has(settings, MISSING):
            return native("not_null", column=plain_name(metric.arguments[0]), **limit)
        return native("expression_is_true", expression=f"NOT coalesce({missing}, TRUE)", **limit)
    if not _has(settings, MISSING) and (alike := _native_validity(str(plain_name(metric.arguments[0])), settings)):
        ((name, parameters),) = alike.items()
        return [{name: {**parameters, **limit}}]
    good = f"coalesce({missing}, TRUE) OR coalesce({valid_condition(column, settings)}, FALSE)"
    return native("expression_is_true", expression=good, **limit)
