"""Values of JSON in every form of file: the job loads what a number says, or refuses it."""

import gzip
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from sluice.input.plain_notation import is_exact_double
from tests.harness.exact_texts import as_decimal, as_double, as_whole, texts
from tests.harness.ingester import Ingester, file
from tests.harness.seeds import new_seed

_SEED = new_seed()
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE = [str(number) for number in (-129, -128, -1, 0, 127, 128, 200, 255, 256, 32768)]
_ROUNDED = ["1.123456789012345678", "12345678901234567.89", "100.00000000000000001", "1e-400"]
_LINES, _ARRAY = "\n", ",\n"
_FORMS = {
    "lines": ("a.jsonl", _LINES, {}),
    "lines in UTF-8": ("a.jsonl.gz", _LINES, {"charset": "utf8", "lineSep": "\n"}),
    "array": ("a.json", _ARRAY, {"encoding": "UTF-8"}),
    "compressed array": ("a.json.gz", _ARRAY, {}),
    "lines in ISO-8859-1": ("a.jsonl", _LINES, {"encoding": "ISO-8859-1", "lineSep": "\n"}),
    "array in UTF-16": ("a.json", _ARRAY, {"encoding": "UTF-16"}),
}
_KEEP_DIGITS = ("lines", "lines in UTF-8", "array")
_RULES: dict[str, Callable[[str], Any]] = {
    "a TINYINT": lambda text: as_whole(text, 8),
    "b DECIMAL(38,18)": lambda text: as_decimal(text, 38, 18),
    "c DECIMAL(10,2)": lambda text: as_decimal(text, 10, 2),
    "d DOUBLE": as_double,
    "e STRING": lambda text: text,
}


def load(job: Ingester, form: str, structs: list[dict[str, str]]) -> str | None:
    """Load structs in maps, whose fields the files write with capital letters; return the refusal."""
    name, between, options = _FORMS[form]
    rows = []
    for at, struct in enumerate(structs):
        fields = ", ".join(f'"{field[0].upper()}": {number}' for field, number in struct.items())
        rows.append(f'{{"id": {at}, "m": {{"ø{at % 5}": {{{fields}}}}}}}')
    content = between.join(rows)
    encoded = (f"[{content}]" if between == _ARRAY else content).encode(options.get("encoding", "utf-8"))
    path = file(job, name, gzip.compress(encoded) if name.endswith(".gz") else encoded)
    schema = f"id INT, m MAP<STRING, STRUCT<{', '.join(_RULES)}>>"
    return job.refusal({"path": path, "schema": schema, "options": options})


@pytest.mark.parametrize("form", _FORMS)
def test_a_number_of_json_is_loaded_as_it_is_written_or_refused(job: Ingester, form: str) -> None:
    print(f"seed {_SEED}")
    draw = random.Random(f"{form} {_SEED}")
    numbers = [*_WHOLE, *_ROUNDED, *(each for each in texts(draw) if _NUMBER.fullmatch(each))]
    keeps_digits = form in _KEEP_DIGITS

    def expected(field: str, number: str) -> Any:
        is_kept = keeps_digits or number.removeprefix("-").isdigit() or is_exact_double(number)
        return _RULES[field](number) if is_kept else None

    good = {field: [number for number in numbers if expected(field, number) is not None] for field in _RULES}
    bad = [(field, number) for field in _RULES for number in numbers if expected(field, number) is None]
    structs = [{field: each[at % len(each)] for field, each in good.items()} for at in range(len(numbers))]
    assert load(job, form, structs) is None
    for row, struct in zip(job.rows(), structs, strict=True):
        ((key, stored),) = row["m"]
        assert key == f"ø{row['id'] % 5}"
        for field, number in struct.items():
            value = stored[field[0]]
            same = value == expected(field, number)
            if field == "e STRING" and not keeps_digits:  # in the notation of Java
                same = float(value) == float(number)
            assert same, (field, number, value)
    for field, number in [("a TINYINT", "200"), draw.choice(bad)]:
        assert load(job, form, [{field: number}]), (field, number)
