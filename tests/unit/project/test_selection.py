"""`make test` runs something of every kind, and each test belongs to exactly one selection."""

import re
from pathlib import Path

import pytest

from devstack.stack import ROOT
from tests.selection import LONG, ORDER, QUICK_FOLDERS, SELECTED, SENTINELS, SLOW_FOLDERS, module_of, next_module


@pytest.fixture
def selected(request: pytest.FixtureRequest) -> list[tuple[str, str, str]]:
    """All collected tests, including deselected ones."""
    collected = request.config.stash[SELECTED]
    if {folder for folder, _, _ in collected} != {*QUICK_FOLDERS, *SLOW_FOLDERS}:
        pytest.skip("only some of the folders were collected")
    return collected


def test_every_folder_is_in_the_quick_selection(selected: list[tuple[str, str, str]]) -> None:
    assert {folder for folder, selection, _ in selected if selection == "quick"} == {*QUICK_FOLDERS, *SLOW_FOLDERS}


def test_every_slow_kind_has_a_sentinel(selected: list[tuple[str, str, str]]) -> None:
    assert {sentinel for _, selection, sentinel in selected if selection == "quick" and sentinel} == SENTINELS


def test_each_module_of_the_matrix_is_run_by_a_command() -> None:
    commands = re.findall(r"^\t.*-m pytest (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {
        word for command in commands if "matrix" in command for word in command.split() if word.startswith("tests/")
    }
    for file in {*(ROOT / "tests").rglob("test_*.py")} - {Path(__file__)}:
        path = str(file.relative_to(ROOT))
        if re.search(r"mark\.matrix\b", file.read_text()) and "sequences" not in path:
            assert path in named or path.startswith("tests/faults/"), (
                f"neither make faults nor make sequences runs {path}"
            )


def test_every_folder_of_tests_is_known() -> None:
    folders = {
        file.relative_to(Path(__file__).parents[2]).parts[0] for file in Path(__file__).parents[2].rglob("test_*.py")
    }
    assert folders == {*QUICK_FOLDERS, *SLOW_FOLDERS}


def test_every_long_module_exists() -> None:
    assert [name for name in LONG if not (ROOT / "tests" / name).is_file()] == []


def test_every_folder_has_a_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted({*QUICK_FOLDERS, *SLOW_FOLDERS})


def test_a_process_takes_modules_of_the_kind_that_it_began_with_as_long_as_there_are_any() -> None:
    waiting = [
        *("tests/faults/test_a.py", "tests/e2e/test_b.py", "tests/component/test_c.py"),
        *("tests/component/loads/test_d.py", "tests/unit/test_e.py"),
    ]
    for process, order in enumerate([(0, 1, 3, 4, 2), (2, 3, 4, 0, 1), (3, 4, 2, 0, 1), (0, 1, 3, 4, 2)]):
        left, taken = list(waiting), []
        while left:
            taken.append(next_module(left, process))
            left.remove(taken[-1])
        assert taken == [waiting[number] for number in order]


def test_the_module_of_a_test_is_its_path() -> None:
    assert module_of("tests/e2e/test_a.py::test_b[c::d]") == "tests/e2e/test_a.py"
