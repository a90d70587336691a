"""Convert the schema checks of SodaCL: required, forbidden, typed and positioned columns, and changes."""

from collections.abc import Callable, Mapping
from typing import Any

from importing.drafts import native
from importing.expectations.columns import column_types
from importing.imported import NotCarriedOver, Parameters
from importing.soda.settings import SETTINGS
from importing.soda.text import as_list

_CHANGES = {
    "column add": ["added"],
    "column delete": ["removed"],
    "column type change": ["promoted"],
    "column index change": ["reordered"],
}
_ALL_CHANGES = ["added", "removed", "renamed", "promoted", "required", "optional", "reordered"]


def schema_checks(settings: Mapping[str, Any]) -> list[Parameters]:
    """Return the checks of one schema check: one for each `when` of its `fail` and `warn`.

    Raises:
        NotCarriedOver: a part of it has no equivalent.
    """
    checks: list[Parameters] = []
    older = ("fail when ", "warn when ")
    if unknown := [key for key in settings if key not in (*SETTINGS, "fail", "warn") and not key.startswith(older)]:
        raise NotCarriedOver(f"{unknown[0]!r} has no equivalent here")
    for level in ("fail", "warn"):
        for name, value in _alerts(settings, level):
            build = _ALERTS.get(str(name).strip())
            if build is None:
                raise NotCarriedOver(f"{name!r} has no equivalent here")
            severity = {"severity": "warn"} if level == "warn" else {}
            checks += [{check: {**given, **severity}} for each in build(value) for check, given in each.items()]
    if not checks:
        raise NotCarriedOver("the schema check has neither `fail` nor `warn`")
    return checks


def _alerts(settings: Mapping[str, Any], level: str) -> list[tuple[str, Any]]:
    """Return each `when` of a level with its value.

    The alerts are in a mapping, in a list of mappings, or each in a key with its level, as in `fail when …`.

    Raises:
        NotCarriedOver: the level has another form.
    """
    pairs: list[tuple[str, Any]] = []
    for body in as_list(settings.get(level) or []):
        if not isinstance(body, dict):
            raise NotCarriedOver(f"`{level}: {str(body)[:60]}` is not a mapping")
        pairs += [(str(name), value) for name, value in body.items()]
    older = [
        (key.removeprefix(f"{level} "), value) for key, value in settings.items() if key.startswith(f"{level} when ")
    ]
    return pairs + older


def _required(value: Any) -> list[Parameters]:
    names = [str(each) for each in as_list(value)]
    if pattern := next((name for name in names if "%" in name or "*" in name), None):
        raise NotCarriedOver(f"a required column {pattern!r} with a wildcard has no equivalent here")
    return native("column_exists", columns=names)


def _forbidden(value: Any) -> list[Parameters]:
    return native("column_absent", columns=[str(each).replace("%", "*") for each in as_list(value)])


def _types(value: Any) -> list[Parameters]:
    if not isinstance(value, dict):
        raise NotCarriedOver("the types of columns are not a mapping")
    return [
        check for name, kind in value.items() for check in native("column_type", column=name, type=column_types([kind]))
    ]


def _positions(value: Any) -> list[Parameters]:
    if not isinstance(value, dict):
        raise NotCarriedOver("the positions of columns are not a mapping")
    return [
        check
        for name, index in value.items()
        for check in native("column_exists", columns=[name], position=int(index) + 1)  # Soda counts from 0
    ]


def _changes(value: Any) -> list[Parameters]:
    names = [str(each) for each in as_list(value)]
    if names == ["any"]:
        return native("schema_drift")
    if unknown := [name for name in names if name not in _CHANGES]:
        raise NotCarriedOver(f"the change {unknown[0]!r} is not known")
    refused = [kind for name in names for kind in _CHANGES[name]]
    return native("schema_drift", allow=[kind for kind in _ALL_CHANGES if kind not in refused])


_ALERTS: Mapping[str, Callable[[Any], list[Parameters]]] = {
    "when required column missing": _required,
    "when forbidden column present": _forbidden,
    "when wrong column type": _types,
    "when wrong column index": _positions,
    "when schema changes": _changes,
}
