"""The id of an installation: generated once, stored, and the same for all processes that start at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.installation.identity import FILE, with_installation
from sluice.errors import BadEnvironment
from sluice.settings import Settings, read_settings


def installation(home: Path, **more: str) -> str:
    return with_installation(Settings.of(sluice_home=home, **more)).installation.sluice_installation


def test_two_homes_have_different_ids_and_each_keeps_its_own(tmp_path: Path) -> None:
    first, second = installation(tmp_path / "one"), installation(tmp_path / "two")
    assert first != second and "sluice" not in (first, second)
    assert [installation(tmp_path / "one"), installation(tmp_path / "two")] == [first, second]
    assert [each.name for each in (tmp_path / "one").iterdir()] == [FILE]


def test_the_setting_wins_and_makes_no_file(tmp_path: Path) -> None:
    assert installation(tmp_path / "home", sluice_installation="east") == "east"
    assert not (tmp_path / "home").exists()
    assert read_settings({}).installation.sluice_installation == ""


def test_workers_that_start_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        ids = set(pool.map(lambda _: installation(tmp_path), range(64)))
    assert len(ids) == 1


@pytest.mark.parametrize("content", ["", "two words", "x" * 101, "\0"])
def test_a_file_that_holds_no_id_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(BadEnvironment, match=r"contains no id of an installation.*SLUICE_INSTALLATION"):
        installation(tmp_path)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(BadEnvironment, match=r"cannot be kept in .*or set SLUICE_INSTALLATION"):
        installation(tmp_path / "home")
