"""SQL conditions of the values that SodaCL counts as missing, valid and invalid."""

import re
from collections.abc import Mapping
from typing import Any

from importing.imported import NotCarriedOver
from importing.soda.text import FORMATS, as_list
from importing.sql_text import literal, literals, number

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MISSING = ("missing values", "missing regex", "missing format")
VALIDITY = (
    "valid values", "valid min", "valid max", "valid length", "valid min length", "valid max length", "valid regex",
    "valid format", "invalid values", "invalid regex", "invalid format",
)  # fmt: skip


def missing_condition(column: str, settings: Mapping[str, Any]) -> str:
    """Return the condition that a value is missing: null, or listed in the settings."""
    tests = [f"{column} IS NULL"]
    if values := [each for each in as_list(settings.get("missing values") or []) if each is not None]:
        tests.append(f"{column} IN ({literals(values)})")
    if (pattern := settings.get("missing regex")) is not None:
        tests.append(f"{column} RLIKE {literal(str(pattern))}")
    if (name := settings.get("missing format")) is not None:
        tests.append(f"{column} RLIKE {literal(format_pattern(str(name)))}")
    return " OR ".join(tests)


def valid_condition(column: str, settings: Mapping[str, Any]) -> str:
    """Return the condition that a value is valid, provided that it is not missing.

    Raises:
        NotCarriedOver: no setting says which values are valid.
    """
    tests = []
    if "valid values" in settings:
        tests.append(f"{column} IN ({literals(as_list(settings['valid values']))})")
    if "invalid values" in settings:
        tests.append(f"{column} NOT IN ({literals(as_list(settings['invalid values']))})")
    lengths = (("valid length", "="), ("valid min length", ">="), ("valid max length", "<="))
    tests += [f"length({column}) {sign} {_number(settings, name)}" for name, sign in lengths if name in settings]
    bounds = (("valid min", ">="), ("valid max", "<="))
    tests += [f"{column} {sign} {_number(settings, name)}" for name, sign in bounds if name in settings]
    for name, positive in (("valid regex", True), ("invalid regex", False)):
        if name in settings:
            tests.append(f"{'' if positive else 'NOT '}{column} RLIKE {literal(str(settings[name]))}")
    for name, positive in (("valid format", True), ("invalid format", False)):
        if name in settings:
            pattern = literal(format_pattern(str(settings[name])))
            tests.append(f"{'' if positive else 'NOT '}CAST({column} AS STRING) RLIKE {pattern}")
    if not tests:
        raise NotCarriedOver("nothing says which values are valid, such as `valid values` or `valid format`")
    return " AND ".join(f"({each})" for each in tests)


def format_pattern(name: str) -> str:
    """Return the regular expression of a named format, which matches a whole value.

    Raises:
        NotCarriedOver: the format has no equivalent.
    """
    pattern = FORMATS.get(name.strip().lower())
    if pattern is None:
        raise NotCarriedOver(f"the format {name!r} has no equivalent here")
    return rf"^\s*(?:{pattern})\s*$"


def _number(settings: Mapping[str, Any], name: str) -> int | float | str:
    value = number(settings[name])
    if value is None and _DATE.fullmatch(str(settings[name])):
        return f"DATE '{settings[name]}'"
    if value is None:
        raise NotCarriedOver(f"`{name}: {settings[name]}` is not a number")
    return value
