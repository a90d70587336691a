"""Drafts of checks: the meaning of a test as a check of Sluice, as a query, or as both.

The check is preferred, because metadata may answer it. The query is used if the test has a filter, a threshold or
another option that the check does not have.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from importing.imported import NotCarriedOver, Parameters, is_valid
from importing.sql_text import quoted_name
from sluice.checks.registry import REGISTRY, expand
from sluice.checks.rows import Filtered, RowCheck
from sluice.checks.thresholds import threshold
from sluice.errors import InvalidPipeline

_LEVEL = re.compile(r"\s*(<=|>=|!=|<>|=|==|<|>)\s*(-?\d+(?:\.\d+)?)\s*")
_ANY = ("> 0", "!= 0", ">0", "!=0", ">= 1", ">=1")
"""Thresholds that one bad row reaches, which is the default of every test."""


@dataclass(frozen=True)
class Target:
    """The subject of a test: a table, or some of its rows."""

    table: str
    where: str | None = None
    """A condition in Spark SQL."""
    scope: str = "table"

    @property
    def rows(self) -> str:
        """The rows as a source for SELECT."""
        name = quoted_name(self.table)
        return f"(SELECT * FROM {name} WHERE {self.where})" if self.where else name

    def narrowed(self, *conditions: str | None) -> "Target":
        """Return the target with further conditions, all of which must be true."""
        given = [each for each in (self.where, *conditions) if each]
        joined = " AND ".join(f"({each})" for each in given) if len(given) > 1 else "".join(given)
        return Target(self.table, joined or None, self.scope)


@dataclass(frozen=True)
class Limits:
    """Severity and thresholds of a test, by the number of its bad rows."""

    severity: Literal["fail", "warn"] = "fail"
    fail_if: str | None = None
    warn_if: str | None = None
    failures: str = "count(*)"
    """The SQL expression that counts the bad rows."""

    @property
    def are_default(self) -> bool:
        """True if one bad row is enough to fail, or to warn."""
        return not any([self.fail_if, self.warn_if]) and self.failures == "count(*)"


@dataclass(frozen=True)
class Draft:
    """One test as checks and as a query; at least one of them is given."""

    query: str | None = None
    """A query that returns the bad rows, without limits."""
    native: Sequence[Parameters] = field(default_factory=list)
    """Equivalent checks, without `severity` and `scope`, and without `where` unless the test itself adds to it."""


def native(name: str, **parameters: Any) -> list[Parameters]:
    """Return a check as the only one of a draft, without parameters that are None."""
    return [{name: {key: value for key, value in parameters.items() if value is not None}}]


def bad_rows(target: Target, condition: str) -> str:
    """Return the query of the rows for which a condition is true."""
    return f"SELECT * FROM {target.rows} AS rows WHERE {condition}"


def finished(draft: Draft, target: Target, limits: Limits, name: str) -> list[Parameters]:
    """Return the checks of a draft, with its filter and limits.

    Args:
        name: name in reports of a check that is a query.

    Raises:
        NotCarriedOver: neither the checks nor a query can express them.
    """
    checks = _as_checks(draft.native, target, limits) if draft.native else None
    if draft.query is None:
        if checks is None:
            raise NotCarriedOver("the check takes neither `where` nor thresholds here")
        return checks
    if checks and all(map(is_valid, checks)):
        return checks
    return _as_queries(draft.query, limits, name)


def _as_checks(drafted: Sequence[Parameters], target: Target, limits: Limits) -> list[Parameters] | None:
    checks = []
    for each in drafted:
        ((name, parameters),) = each.items()
        try:
            kind = REGISTRY[expand(each)[0]["check"]]
        except (InvalidPipeline, IndexError):
            return None
        thresholds = _row_thresholds(limits) if limits.are_default or issubclass(kind, RowCheck) else None
        if thresholds is None or (target.where and not issubclass(kind, Filtered)):
            return None
        if len(drafted) > 1 and not limits.are_default:
            return None  # the limits apply to the bad rows of all checks together
        where = {"where": target.where} if target.where else {}
        severity = {"severity": "warn"} if limits.severity == "warn" else {}
        # A condition that is part of the test itself already contains that of the target.
        checks.append({name: {**where, **parameters, **thresholds, **severity, "scope": target.scope}})
    return checks


def _row_thresholds(limits: Limits) -> Parameters | None:
    """Return the limits as thresholds of a row check, or None if its thresholds cannot express them."""
    if limits.failures != "count(*)":
        return None
    levels = (limits.fail_if, limits.warn_if)
    fail_if, warn_if = (None if level is None or level in _ANY else level for level in levels)
    if limits.severity == "warn":
        fail_if = None
    elif not fail_if:
        return {}  # one bad row fails, so no threshold of warnings matters
    else:
        warn_if = warn_if or "> 0"
    try:
        given = {"fail_if": fail_if and threshold(fail_if), "warn_if": warn_if and threshold(warn_if)}
    except ValueError:
        return None
    return {key: value for key, value in given.items() if value}


def _as_queries(query: str, limits: Limits, name: str) -> list[Parameters]:
    if limits.are_default:
        return [sql_check(query, name, limits.severity)]
    counted = f"SELECT * FROM (SELECT {limits.failures} AS failures FROM ({query}) AS bad_rows) AS counted WHERE "
    fails, may_warn = _level(limits.fail_if), _level(limits.warn_if)
    if limits.severity == "warn":
        return [sql_check(counted + may_warn, name, "warn")]
    checks = [sql_check(counted + fails, name, "fail")]
    if may_warn != fails:
        checks.append(sql_check(f"{counted}{may_warn} AND NOT ({fails})", name, "warn"))
    return checks


def _level(text: str | None) -> str:
    if text is None:
        return "failures <> 0"
    match = _LEVEL.fullmatch(text)
    if match is None:
        raise NotCarriedOver(f"{text!r} is not a threshold")
    return f"failures {match[1].replace('==', '=')} {match[2]}"


def sql_check(query: str, name: str, severity: str = "fail") -> Parameters:
    """Return a check `sql` with a query that returns the bad rows. `name` is its name in reports."""
    return {
        "sql": {
            "name": name.strip() or "failed rows",
            "query": query,
            **({"severity": "warn"} if severity == "warn" else {}),
        }
    }
