"""The figures of a measurement, and their comparison with the last kept ones."""

import json
from pathlib import Path

import pytest

from bench.__main__ import PARTS
from bench.figures import Kept, figures, lines_of
from bench.stack import MEASUREMENTS

RUNS = [
    {"rows": 1000, "way": "warm", "round": number, "seconds": seconds, "timings": {"writing": seconds / 2}}
    for number, seconds in ((1, 4.0), (2, 2.0), (3, 3.0))
]


def test_a_list_of_numbers_is_a_figure() -> None:
    assert figures({"cold": {"rebased": [3, 1.5]}, "memory": {"100": 7}}) == {"cold rebased": [3.0, 1.5]}


def test_records_with_the_same_texts_are_rounds_of_one_measurement() -> None:
    other = {"rows": 1000, "way": "cold", "round": 1, "seconds": 9.0}
    assert figures([*RUNS, other]) == {
        "1000 warm seconds": [4.0, 2.0, 3.0],
        "1000 warm timings writing": [2.0, 1.0, 1.5],
    }


def test_each_figure_is_compared_with_the_kept_one(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    assert Kept.read(file) is None
    file.write_text(json.dumps({"machine": {"commit": "abc1234"}, "results": {"warm": [6.0, 2.0]}}))
    now = Kept({"commit": "def5678"}, {"warm": [1.0, 2.0, 6.0], "new": [5.0, 5.0]})
    assert lines_of(now, Kept.read(file)) == [
        "warm: 2 (3 rounds, 1 to 6), 0.50 of 4 at abc1234",
        "new: 5 (2 rounds, 5 to 5)",
    ]
    assert lines_of(now, None)[0] == "warm: 2 (3 rounds, 1 to 6)"


@pytest.mark.parametrize("part", [part for part in PARTS if (MEASUREMENTS / f"{part}.json").is_file()])
def test_the_kept_results_of_each_measurement_can_be_compared(part: str) -> None:
    kept = Kept.read(MEASUREMENTS / f"{part}.json")
    assert kept is not None and kept.machine["commit"]
