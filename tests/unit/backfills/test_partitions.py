"""The partitions of a backfill, as a person writes them."""

import pytest

from sluice.backfills.partitions import MAX_PARTITIONS, parse_partitions
from sluice.errors import InvalidPipeline


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("2018..2020", ["2018", "2019", "2020"]),
        ("2018-11..2019-02", ["2018-11", "2018-12", "2019-01", "2019-02"]),
        ("2020-02-28..2020-03-01", ["2020-02-28", "2020-02-29", "2020-03-01"]),
        ("2018-01..2018-01", ["2018-01"]),
        ("9998-12-30..9998-12-31", ["9998-12-30", "9998-12-31"]),
        ("b, a,b", ["b", "a"]),
        ("2019-01,2018-01..2018-02,2018-02", ["2019-01", "2018-01", "2018-02"]),
        ("0999-12..1000-01", ["0999-12", "1000-01"]),
    ],
)
def test_ranges_and_lists_in_order_and_each_once(text: str, partitions: list[str]) -> None:
    assert parse_partitions(text) == partitions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has an empty name of a partition"),
        ("a,,b", "has an empty name of a partition"),
        ("2020..2018", "goes backwards: write 2018..2020"),
        ("2018-01..2019", "goes from a month to a year: write both ends in the same form"),
        ("2018..", "is not a range of partitions: write a range as 2018..2020"),
        ("a..b", "is not a range of partitions"),
        ("2018..2019..2020", "is not a range of partitions"),
        ("2018-13..2019-01", "is not a valid date"),
        ("2018-02-30", "is not a valid date"),
        ("x' OR 1=1", "is not a valid name of a partition"),
        ("1900-01-01..2020-12-31", "more than 10,000 partitions"),
        ("0001..9998,0001-01..0900-12", "more than 10,000 partitions"),
        (",".join(f"{number:0100}" for number in range(2001)), "more than 200,000 characters"),
    ],
)
def test_misuse_is_one_message(text: str, message: str) -> None:
    with pytest.raises(InvalidPipeline, match=message) as refused:
        parse_partitions(text)
    assert len(str(refused.value)) < 300


def test_as_many_as_may_be() -> None:
    names = [f"p{number}" for number in range(MAX_PARTITIONS)]
    assert parse_partitions(",".join(names)) == names
