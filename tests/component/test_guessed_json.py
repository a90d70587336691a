"""Generated JSON without a schema: the table holds what the records say, or the files are refused.

`check` shows the types of the table.
"""

import json
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from lakehouse.source_files import find_files, preview_types
from sluice.contracts.guessed_types import GuessedTypes, listed_types
from sluice.pipeline.source import Source
from tests.harness.exact_texts import texts
from tests.harness.ingester import Ingester, file
from tests.harness.seeds import new_seed

_SEED = new_seed()
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_ROWS, _COLUMNS = 8, 15
_DEEPEST = 2
_STRINGS = [
    '"x"',
    '"été"',
    '"1.50"',
    '"2024-01-05"',
    '"true"',
    '"{}"',
    '"a \\"b\\" \\\\ \\n"',
    '""',
    '"\\u00e4\\ud83d\\ude00"',
]
Draw = Callable[[], str]


class _Number(str):
    """The digits of a number."""


def _generator(draw: random.Random, numbers: list[str], depth: int = 0) -> Draw:
    """Return a function that draws the JSON text of values of one column, or of one field."""
    short = [number for number in numbers if re.fullmatch(r"-?\d{1,6}(\.\d{1,6})?", number)]
    kinds: dict[str, Draw] = {
        "whole": lambda: str(draw.randrange(-(10 ** draw.choice((3, 9, 18))), 10**9)),
        "number": lambda: draw.choice(short),
        "exact number": lambda: repr(draw.uniform(-1e6, 1e6)),
        "text": lambda: draw.choice(_STRINGS),
        "boolean": lambda: draw.choice(("true", "false")),
        "nothing": lambda: draw.choice(("null", "null", "[]", "{}", "[null]")),
        "any number": lambda: draw.choice(numbers),
    }
    if depth < _DEEPEST:
        element = _generator(draw, numbers, depth + 1)
        fields = {f"f{each}": _generator(draw, numbers, depth + 1) for each in range(draw.randrange(4))}
        kinds["list"] = lambda: f"[{', '.join(element() for _ in range(draw.randrange(3)))}]"
        kinds["object"] = lambda: _object(draw, fields)
    some = [kinds[name] for name in draw.sample(sorted(kinds), draw.choice((1, 1, 1, 2)))]
    return lambda: draw.choice((draw.choice(some)(), draw.choice(some)(), draw.choice(some)(), "null"))


def _object(draw: random.Random, fields: dict[str, Draw]) -> str:
    """Return an object that has most of the fields."""
    return f"{{{', '.join(f'{json.dumps(name)}: {value()}' for name, value in fields.items() if draw.random() < 0.8)}}}"


def _says(value: Any, held: Any) -> bool:
    """Return True if a table's value is the one that a record says. In a column of text, a number has its digits."""
    same = value == held and (held is None or isinstance(held, str) == isinstance(value, str))
    match value, held:
        case _Number(), int() | float() | Decimal() if not isinstance(held, bool):
            same = Decimal(repr(held) if isinstance(held, float) else held) == Decimal(value)
        case dict(), dict():
            same = all(_says(value.get(name), held.get(name)) for name in {**value, **held})
        case list(), list():
            same = len(value) == len(held) and all(map(_says, value, held))
        case bool() | dict() | list(), str():
            same = json.loads(held, parse_int=_Number, parse_float=_Number) == value
    return bool(same)


def _is_nothing(value: Any) -> bool:
    """Return True for NULL, and for lists and objects with nothing else in them."""
    return value is None or (
        isinstance(value, dict | list) and all(map(_is_nothing, value.values() if isinstance(value, dict) else value))
    )


def _types(guessed: GuessedTypes) -> dict[str, tuple[str, list[str]]]:
    return {each.name: (each.type, each.as_text) for each in guessed.columns}


def test_the_table_holds_what_the_records_say(job: Ingester) -> None:
    print(f"seed {_SEED}")
    draw = random.Random(_SEED)
    numbers = [text for text in texts(draw) if _NUMBER.fullmatch(text)]
    loaded, name = 0, job.table
    for at in range(_COLUMNS):
        column = _generator(draw, numbers)
        records = [f'{{"id": {row}, "x": {column()}}}' for row in range(_ROWS)]
        content = f"[{', '.join(records)}]" if draw.random() < 0.3 else "\n".join(records)
        job.table = f"{name}_{at}"
        source = Source(path=file(job, f"{at}.json", content))
        if refusal := job.refusal(source.model_dump(exclude_defaults=True)):
            print(refusal)
            continue
        loaded += 1
        previewed = listed_types(preview_types(source, find_files(source)).columns, show_values=False)
        assert _types(previewed) == _types(job.answer.types), content
        rows = job.rows()
        for record, row in zip(records, rows, strict=True):
            value = json.loads(record, parse_int=_Number, parse_float=_Number)["x"]
            is_same = _says(value, row["x"]) if "x" in row else _is_nothing(value)
            assert is_same, (content, record, row)
    assert loaded > _COLUMNS / 2
