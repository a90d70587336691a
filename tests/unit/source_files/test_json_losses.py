"""Text of JSON that Spark changes or drops, compared with Python's reader, for pieces of any size."""

import json
import random
from typing import Any

import pytest

from lakehouse.source_files.json_losses import without_losses
from sluice.errors import InvalidInput
from tests.harness.seeds import new_seed

_SEED = new_seed()
_VALUES = 5_000
_LETTERS = ["a", '"', "\\", "{", ",", ":", "\n", "1", "f", "u", "é", "😀"]


def test_each_loss_is_refused_and_nothing_else() -> None:
    print(f"seed {_SEED}")
    draw = random.Random(_SEED)
    refused = [_is_refused(draw, {"a": _value(draw, 0)}) for _ in range(_VALUES)]
    assert 20 < sum(refused) < _VALUES / 4


def _is_refused(draw: random.Random, value: Any) -> bool:
    text = json.dumps(value, indent=draw.choice((None, 1)))
    size = draw.choice((1, 2, 3, 7, 100))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    try:
        assert list(without_losses("in.json", iter(pieces))) == pieces
        is_refused = False
    except InvalidInput:
        is_refused = True
    assert is_refused == _is_lossy(json.loads(text)), (text, size)
    return is_refused


def _value(draw: random.Random, depth: int) -> Any:
    kind = draw.random()
    if kind < 0.5 or depth > 3:
        halves = ["\ud83d", "\ude00"] if draw.random() < 0.02 else []
        return "".join(draw.choices(_LETTERS + halves * 3, k=draw.randrange(6)))
    if kind < 0.7:
        return [_value(draw, depth + 1) for _ in range(draw.randrange(3))]
    return {_name(draw, number): _value(draw, depth + 1) for number in range(draw.randrange(4))}


def _name(draw: random.Random, number: int) -> str:
    odd = "".join(draw.choices('ab",:{', k=draw.choice((0, 1, 2, 2, 2))))
    return odd if draw.random() < 0.1 else f"field{number}"


def _is_lossy(value: Any) -> bool:
    match value:
        case str():
            return any("\ud800" <= letter <= "\udfff" for letter in value)
        case list():
            return any(map(_is_lossy, value))
    return any(not name or _is_lossy(inner) for name, inner in value.items())


@pytest.mark.parametrize("run", ["a" * 10_000, r"\u0430" * 2_000, r"\ud83d\ude00" * 1_000, "\\\\" * 5_001])
def test_no_escape_of_a_long_run_is_cut(run: str) -> None:
    for size in (1_000, 4_095, 4_096, 4_097):
        text = f'{{"x": "{run}"}}'
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert list(without_losses("in.json", iter(pieces))) == pieces
        with pytest.raises(InvalidInput, match=r"line 1 contains \\ud83d"):
            list(without_losses("in.json", iter([*pieces[:-1], pieces[-1].replace('"}', r'\ud83d"}')])))


@pytest.mark.parametrize(
    ("text", "is_lost"),
    [
        ("{'': 1}", True),
        ("{'a': 'it\\'s', '' : 1}", True),
        ('{"a": "it\'s", \'\': 1}', True),
        ("{'a': ''}", False),
        ('{"a": "{\'\': 1}"}', False),
        ('{"a": "x\\", {\'\': 1}"}', False),
        ("{'a': '\"', '': 1}", True),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_name_without_a_character_in_single_quotes(text: str, size: int, *, is_lost: bool) -> None:
    """Spark accepts single quotes by default. Within a string they are part of the value."""
    content = f'{{"b": 1}}\n{text}\n'
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    if is_lost:
        with pytest.raises(InvalidInput, match="line 2 has a field with an empty name"):
            list(without_losses("in.json", iter(pieces)))
    else:
        assert list(without_losses("in.json", iter(pieces))) == pieces


def test_the_line_is_that_of_the_loss() -> None:
    with pytest.raises(InvalidInput, match=r"in\.json: line 3 has a field with an empty name"):
        list(without_losses("in.json", iter(['{"a": 1}\n{"a', '": 2}\n{"b": 1, ', '""', " : 3}\n"])))
