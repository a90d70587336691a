"""The plain notation of values, and the description of guessed types."""

import random

import pytest

from sluice.contracts.guessed_types import MOST_LISTED, GuessedColumn, GuessedTypes, listed_types
from sluice.input.plain_notation import DATES, digits_of, is_exact_double, notation_of
from sluice.presentation.guessed_types import describe_types
from tests.harness.exact_texts import as_moment, texts
from tests.harness.seeds import new_seed

_SEED = new_seed()


@pytest.mark.parametrize(
    ("notation", "texts"),
    [
        ("whole", ["0", "-7", "123456789012345678901234567890"]),
        ("fraction", ["0.5", "-1.50", "12.0"]),
        ("day", ["2024-02-29"]),
        ("moment", ["2024-01-05 10:30", "2024-01-05T10:30:00.123456000Z", "2024-01-05 10:30:00+18:00"]),
        ("boolean", ["true", "FALSE"]),
        (
            "text",
            ["", "-0", "12D", "1E5", "00123", "+47", "10:30", "2024-01", "2023-02-29", "2024-01-05 25:00", "٣", "1\n"],
        ),
    ],
)
def test_a_value_has_one_notation(notation: str, texts: list[str]) -> None:
    assert {text: notation_of(text) for text in texts} == dict.fromkeys(texts, notation)


@pytest.mark.parametrize(
    ("number", "is_exact"),
    [
        ("0.1", True),
        ("9007199254740993", False),
        ("9007199254740992", True),
        ("0.30000000000000004", True),
        ("0.3000000000000000444", False),
        ("100000000000000000000000", True),
        ("-123456789012345.678", False),
    ],
)
def test_a_double_holds_a_number_by_its_digits(number: str, is_exact: bool) -> None:
    assert is_exact_double(number) is is_exact


def test_zeros_at_the_end_need_no_digits() -> None:
    assert [digits_of(number) for number in ("-12.500", "0.0", "7")] == [(2, 1), (1, 0), (1, 0)]


def test_columns_with_a_deciding_value_are_listed_first() -> None:
    plain = [GuessedColumn(name=f"c{number}", type="INT") for number in range(MOST_LISTED)]
    decided = GuessedColumn(name="seat", type="STRING", value="12D", where="a.csv")
    untyped = GuessedColumn(name="note", type="")
    listed = listed_types([*plain, decided, untyped], show_values=True)
    assert [each.name for each in listed.columns] == [
        *(f"c{number}" for number in range(MOST_LISTED - 2)),
        "seat",
        "note",
    ]
    assert listed.total == MOST_LISTED + 2
    sentence = describe_types(listed)
    assert sentence.endswith("c19 INT; and 31 more columns; no value yet, so left out: note")
    many = [GuessedColumn(name=f"n{number}", type="") for number in range(MOST_LISTED)]
    listed = listed_types([*many, decided], show_values=True)
    assert (
        describe_types(listed).startswith("seat STRING ('12D' in a.csv); and 1 more column; no value yet")
        and len(listed.columns) == 50
    )
    long = GuessedColumn(name="a", type="STRING", value="x" * 1000, where="a.csv")
    assert len(listed_types([long], show_values=True).columns[0].value) < 50


def test_nothing_guessed_is_nothing_said() -> None:
    assert describe_types(GuessedTypes()) == ""
    untyped = GuessedColumn(name="a", type="")
    assert describe_types(listed_types([untyped], show_values=True)) == "no value yet, so left out: a"
    hidden = GuessedColumn(name="a", type="STRING", where="a.csv")
    assert describe_types(listed_types([hidden], show_values=False)) == "a STRING (a text in a.csv)"


def test_a_day_or_a_moment_is_a_text_that_states_a_point_in_time() -> None:
    """The reading of the tests is independent. `check` and Spark must find the same texts to be times."""
    for text in texts(random.Random(_SEED)):
        states_time = as_moment(text, zone=True) is not None
        assert (notation_of(text) in DATES) == states_time, f"{text!r}, seed {_SEED}"
