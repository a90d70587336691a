"""The figures in the results of a measurement, and their comparison with those of an earlier one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.stack import median

_ROUND = "round"
"""The key that numbers the measurements of one figure."""


@dataclass(frozen=True)
class Kept:
    """The results of a measurement, as a file keeps them."""

    machine: Mapping[str, Any]
    figures: Mapping[str, Sequence[float]]
    """The values of each figure that was measured in several rounds, by its path in the results."""

    @classmethod
    def read(cls, file: Path) -> "Kept | None":
        """Read a file of results. Return None if there is none."""
        if not file.exists():
            return None
        content = json.loads(file.read_text())
        return cls(content["machine"], figures(content["results"]))


def figures(results: Any) -> dict[str, list[float]]:
    """Return the values of each figure, by the path to it.

    A list of numbers is one figure. In a list of records, those with the same texts and the same number of rows are the
    rounds of one measurement; each other number of theirs is a figure.
    """
    collected: dict[str, list[float]] = {}
    for path, value in _values(results, ()):
        collected.setdefault(" ".join(path), []).append(value)
    return {path: values for path, values in collected.items() if len(values) > 1}


def lines_of(now: Kept, before: Kept | None) -> list[str]:
    """Return a line for each figure: rounds, median, spread, and the ratio to the earlier median, if there is one."""
    lines = []
    for path, values in now.figures.items():
        middle, earlier = median(values), before.figures.get(path) if before else None
        line = f"{path}: {middle:.4g} ({len(values)} rounds, {min(values):.4g} to {max(values):.4g})"
        if before and earlier and median(earlier):
            line += f", {middle / median(earlier):.2f} of {median(earlier):.4g} at {before.machine['commit']}"
        lines.append(line)
    return lines


def _values(results: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(results, dict):
        for key, value in results.items():
            yield from _values(value, (*path, key))
    elif isinstance(results, list):
        for each in results:
            yield from _values(*_record(each, path))
    elif isinstance(results, int | float) and not isinstance(results, bool):
        yield path, float(results)


def _record(each: Any, path: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    """Return the numbers of a record, and the path with the texts that name it."""
    if not isinstance(each, dict):
        return each, path
    names = [str(value) for key, value in each.items() if isinstance(value, str) or key == "rows"]
    rest = {key: value for key, value in each.items() if not isinstance(value, str) and key not in (_ROUND, "rows")}
    return rest, (*path, *names)
