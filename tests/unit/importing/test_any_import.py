"""Files to import of any shape are imported with the rest named, or refused by a sentence, never by a traceback."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing.imported import SourceText
from importing.project import Files, ImportOptions, import_files
from sluice.errors import InvalidPipeline
from tests.harness.any_values import ANYTHING, MANY, WHOLE_FILES

DBT = "models:\n  - name: orders\n    columns:\n      - {name: amount, tests: [{accepted_values: {values: [1]}}]}\n"
SODA = "checks for orders:\n  - row_count > 0\n  - missing_count(id) = 0:\n      name: a\n"
SUITE = json.dumps(
    {
        "name": "s",
        "expectations": [{"type": "expect_column_values_to_be_between", "kwargs": {"column": "a", "min_value": 0}}],
    }
)
IMPORTED = {
    "dbt": (DBT, r"orders|amount|accepted_values|\[1\]|models|name|columns|tests|\{values: \[1\]\}|values"),
    "soda": (SODA, r"orders|row_count > 0|missing_count\(id\) = 0|name|\ba\b|checks for orders"),
    "suites": (SUITE, r'"s"|"a"|0|\[.*\]|\{"column".*?\}|"expect_\w+"|"kwargs"|"type"'),
}
FILES: dict[str, Callable[[SourceText], Files]] = {
    "dbt": lambda source: Files(dbt=[source]),
    "soda": lambda source: Files(soda=[source]),
    "suites": lambda source: Files(suites=[source]),
}
JSON_VALUES = [
    "null",
    "5",
    "-1",
    "1.5",
    "NaN",
    "true",
    '"x"',
    "[]",
    "{}",
    "[[1]]",
    '{"a": {"b": 1}}',
    "9" * 400,
    "9" * 5000,
    "[null]",
]


def imported_or_refused(kind: str, text: str) -> None:
    """Assert that a file is imported and leftovers are named, or that it is refused by a sentence."""
    for lenient in (False, True):
        try:
            done = import_files(FILES[kind](SourceText("in.file", text)), ImportOptions("shop"), lenient=lenient)
        except InvalidPipeline as error:
            assert "in.file" in str(error) and not lenient
        else:
            assert all(str(each) for each in done.left)


@MANY
@given(data=st.data())
def test_any_value_in_a_file_to_import_is_left_with_a_reason(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*IMPORTED]))
    text, spots = IMPORTED[kind]
    spot = data.draw(st.sampled_from([*re.finditer(spots, text)]))
    value = data.draw(st.sampled_from(JSON_VALUES if kind == "suites" else ANYTHING))
    imported_or_refused(kind, text[: spot.start()] + value + text[spot.end() :])


@pytest.mark.parametrize(
    "value", ["2024-13-01", "!!bool 5", "!!int ''", "&a {<<: *a}", "9" * 5000, "0x" + "f" * 4000, '"\\U00110000"']
)
@pytest.mark.parametrize("kind", ["dbt", "soda"])
def test_a_value_that_cannot_be_read_is_refused_with_its_line(kind: str, value: str) -> None:
    files = FILES[kind](SourceText("in.file", f"a: 1\nb: 2\nc: {value}\n"))
    with pytest.raises(InvalidPipeline, match=r"^in\.file:3: "):
        import_files(files, ImportOptions("shop"), lenient=False)


@pytest.mark.parametrize("kind", IMPORTED)
def test_a_file_to_import_of_any_shape_is_refused_or_left(kind: str) -> None:
    for text in [*WHOLE_FILES, *JSON_VALUES]:
        imported_or_refused(kind, text)
