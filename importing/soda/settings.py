"""Read the lists of checks in SodaCL files, and the settings and alerts of a check."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from importing.imported import NotCarriedOver
from importing.soda.text import as_list
from importing.yaml_lines import line_of, plain

SETTINGS = (
    "name", "title", "identity", "attributes", "samples limit", "samples columns", "samples filter",
    "collect failed rows", "description", "owner", "tags", "severity",
)  # fmt: skip
"""Settings that do not change the result."""
ALERTS = ("warn", "fail")


def require_known(settings: Mapping[str, Any], *known: str) -> None:
    """Check that each setting of a check is known or does not change the result.

    Raises:
        NotCarriedOver: there is another setting.
    """
    if unknown := [key for key in settings if key not in (*SETTINGS, *known)]:
        raise NotCarriedOver(f"{unknown[0]!r} has no equivalent here")


def alerts_of(settings: Mapping[str, Any], threshold: str | None) -> list[tuple[Literal["fail", "warn"], str]]:
    """Return the level and the condition of each alert, such as `> 5` for `when > 5`.

    Args:
        threshold: threshold written after the metric. With one, Soda reads no alerts.

    Raises:
        NotCarriedOver: an alert does not begin with `when`, or there is neither an alert nor a threshold.
    """
    if threshold is not None:
        return []
    alerts: list[tuple[Literal["fail", "warn"], str]] = []
    levels: tuple[Literal["fail", "warn"], ...] = ("fail", "warn")
    for level in levels:
        for each in as_list(settings.get(level) or []):
            text = str(each).strip()
            if not isinstance(each, str) or not re.match(r"when\b", text):
                raise NotCarriedOver(f"`{level}: {text[:60]}` does not begin with `when`")
            alerts.append((level, text.removeprefix("when").strip()))
    if not alerts:
        raise NotCarriedOver("the check has no threshold")
    return alerts


def written_checks(checks: Any) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the line, the settings and the text of each check of a list."""
    for index, each in enumerate(checks if isinstance(checks, list) else []):
        line = line_of(checks, index)
        if isinstance(each, dict) and each:
            key = next(iter(each))
            body = each[key]
            siblings = {str(name): plain(value) for name, value in each.items() if name != key}
            settings = plain(body) if isinstance(body, dict) else {}
            text = str(key).strip() if not isinstance(body, str | int | float) else f"{key} {body}"
            yield line, {**siblings, **settings}, text
        else:
            yield line, {}, str(each).strip()


def datasets_of(body: Mapping[str, Any]) -> list[str]:
    """Return the data sets of a section, without items that are not names."""
    listed = [each for key in ("datasets", "tables") for each in as_list(body.get(key) or [])]
    return [each for each in listed if isinstance(each, str)]


def is_contract(keys: Collection[str]) -> bool:
    """Return True if the keys of a file are those of a data contract, which is not SodaCL."""
    return "dataset" in keys and not {"checks", "columns"}.isdisjoint(keys)


def contract_checks(contract: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the column (or an empty text) and the kind of each check of a data contract."""
    columns = contract.get("columns")
    listed = [each for each in columns if isinstance(each, dict)] if isinstance(columns, list) else []
    for column, part in [("", contract), *((str(each.get("name", "")), each) for each in listed)]:
        for line, _, written in written_checks(part.get("checks")):
            yield line, column, written.removeprefix("type ")[:40]


def bare(name: str) -> str:
    """Return a name without quotes."""
    return name.strip().strip('"`')


def kind_of(written: str) -> str:
    """Return the kind of a check, under which counts list it."""
    return re.split(r"[\s(<>=!]", written.strip(), maxsplit=1)[0] or written[:40]


def columns_in(written: str) -> str:
    """Return the columns that a check names in parentheses."""
    match = re.search(r"\(([^)]*)\)", written)
    return match[1].strip() if match else ""
