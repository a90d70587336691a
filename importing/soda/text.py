"""Parse the language of SodaCL's checks in keys of YAML: metrics, thresholds and formats."""

import re
from dataclasses import dataclass, field
from typing import Any

from importing.imported import NotCarriedOver
from importing.sql_text import column_sql

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
_UNIT = r"(?:\d+\s*[dhms])+"
_VALUE = rf"{_NUMBER}\s*%?|{_UNIT}"
_METRIC = re.compile(
    r"(?P<name>[A-Za-z_$][\w\- ]*?)\s*(?:\((?P<arguments>.*?)\))?"
    rf"(?:\s+(?P<threshold>(?:not\s+)?between\s.*|(?:<=|>=|!=|<>|==|=|<|>)\s*(?:{_VALUE}|\w+)))?",
    re.DOTALL,
)
_COMPARISON = re.compile(rf"(<=|>=|!=|<>|==|=|<|>)\s*({_VALUE})")
_BETWEEN = re.compile(rf"(not\s+)?between\s+([\[(])?\s*({_VALUE})\s+and\s+({_VALUE})\s*([\])])?")
_DURATION = re.compile(r"(\d+)\s*([dhms])")
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


@dataclass(frozen=True)
class Metric:
    """A metric with its arguments and, if one is written after it, the threshold that passes."""

    name: str
    arguments: list[str] = field(default_factory=list)
    threshold: str | None = None


def parse_metric(text: str) -> Metric:
    """Parse a line of a check as a metric.

    Raises:
        NotCarriedOver: it is not a metric.
    """
    match = _METRIC.fullmatch(text.strip())
    if match is None:
        raise NotCarriedOver(f"{text[:80]!r} is not a check that is known")
    arguments = [each.strip() for each in (match["arguments"] or "").split(",") if each.strip()]
    return Metric(match["name"].strip(), arguments, match["threshold"])


def threshold_sql(text: str, observed: str = "observed") -> str:
    """Return a threshold as a SQL condition on the observed value.

    Raises:
        NotCarriedOver: it is not a threshold.
    """
    plain = text.strip()
    if match := _COMPARISON.fullmatch(plain):
        return f"{observed} {match[1].replace('==', '=')} {value_of(match[2])}"
    if match := _BETWEEN.fullmatch(plain):
        low, high = (">" if match[2] == "(" else ">="), ("<" if match[5] == ")" else "<=")
        inside = f"{observed} {low} {value_of(match[3])} AND {observed} {high} {value_of(match[4])}"
        return f"NOT ({inside})" if match[1] else inside
    raise NotCarriedOver(f"{plain[:60]!r} is not a threshold")


def simple_range(text: str) -> tuple[float | None, float | None, bool] | None:
    """Return the bounds of a threshold, and True if they are excluded; None if it is not a range."""
    if match := _COMPARISON.fullmatch(text.strip()):
        value = value_of(match[2])
        if match[1] in ("=", "=="):
            return value, value, False
        if match[1] in (">", ">="):
            return value, None, match[1] == ">"
        if match[1] in ("<", "<="):
            return None, value, match[1] == "<"
    elif (match := _BETWEEN.fullmatch(text.strip())) and not match[1] and match[2] != "(" and match[5] != ")":
        return value_of(match[3]), value_of(match[4]), False
    return None


def value_of(text: str) -> float | int:
    """Return the value of a threshold: a number, a percentage as its number, or a duration in seconds."""
    plain = text.strip().rstrip("%").strip()
    if re.fullmatch(_NUMBER, plain):
        number = float(plain)
        return int(number) if number.is_integer() else number
    return sum(int(count) * _SECONDS[unit] for count, unit in _DURATION.findall(plain))


def is_zero(text: str | None) -> bool:
    """Return True if a threshold allows only zero."""
    return text is not None and simple_range(text) in ((0, 0, False), (None, 0, False))


FORMATS: dict[str, str] = {
    "integer": r"[-+]?\s*\d+",
    "positive integer": r"\+?\s*\d+",
    "negative integer": r"-\s*\d+|0+",
    "decimal": r"[-+]?\s*\d*[.,]?\d+",
    "positive decimal": r"\+?\s*\d*[.,]?\d+",
    "negative decimal": r"-\s*\d*[.,]?\d+|0*[.,]?0+",
    "decimal point": r"[-+]?\s*\d*\.?\d+",
    "decimal comma": r"[-+]?\s*\d*,?\d+",
    "percentage": r"[-+]?\s*\d*[.,]?\d+\s*%",
    "percentage point": r"[-+]?\s*\d*\.?\d+\s*%",
    "positive percentage": r"\+?\s*\d*[.,]?\d+\s*%",
    "date us": r"(0?[1-9]|1[0-2])[-./](0?[1-9]|[12]\d|3[01])[-./](\d{2}|\d{4})",
    "date eu": r"(0?[1-9]|[12]\d|3[01])[-./](0?[1-9]|1[0-2])[-./](\d{2}|\d{4})",
    "date inverse": r"(\d{2}|\d{4})[-./](0?[1-9]|1[0-2])[-./](0?[1-9]|[12]\d|3[01])",
    "date iso 8601": r"\d{4}-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])"
    r"(T\d{2}:?\d{2}(:?\d{2}(\.\d+)?)?(Z|[-+]\d{2}:?\d{2})?)?",
    "time": r"([01]?\d|2[0-3])[:.][0-5]\d([:.][0-5]\d)?(\s*[AaPp][Mm])?",
    "time 24h": r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?",
    "time 12h": r"(0?[1-9]|1[0-2]):[0-5]\d(:[0-5]\d)?\s*[AaPp][Mm]",
    "phone number": r"(\+\d{1,3}[\s.-]?)?\(?\d{1,4}\)?([\s.-]?\d{2,4}){2,5}",
    "email": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "ip address": r"((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)",
    "ipv4 address": r"((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)",
    "ipv6 address": r"([0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}",
    "credit card number": r"(\d{4}[\s-]?){3}\d{4}|\d{4}[\s-]?\d{6}[\s-]?\d{5}",
}
"""Formats that a `valid format` names, each with the pattern that a whole value must match."""


def column_arguments(metric: Metric) -> list[str]:
    """Return the columns of a metric as SQL."""
    return [column_sql(each) for each in metric.arguments]


def as_list(value: Any) -> list[Any]:
    """Return a value as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]
