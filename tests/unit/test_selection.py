"""`make test` runs something of every kind, and each test belongs to exactly one selection."""

from pathlib import Path

import pytest

from tests.selection import ORDER, QUICK_FOLDERS, SELECTED, SENTINELS, SLOW_FOLDERS, group_of


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


def test_every_folder_of_tests_is_known() -> None:
    folders = {
        file.relative_to(Path(__file__).parents[1]).parts[0] for file in Path(__file__).parents[1].rglob("test_*.py")
    }
    assert folders == {*QUICK_FOLDERS, *SLOW_FOLDERS}


def test_every_folder_has_a_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted({*QUICK_FOLDERS, *SLOW_FOLDERS})


def test_what_shares_a_server_stays_in_one_process_and_other_modules_go_where_there_is_room() -> None:
    whole, component = group_of("tests/e2e/test_a.py::test_b"), group_of("tests/component/test_a.py::test_b")
    assert group_of("tests/faults/test_c.py::test_d[e]") == whole != component
    assert group_of("tests/component/test_c.py::test_d") == component
    assert group_of("tests/component/sequences/test_c.py::test_d") != component
    assert group_of("tests/unit/test_a.py::test_b") != group_of("tests/unit/test_c.py::test_b")
