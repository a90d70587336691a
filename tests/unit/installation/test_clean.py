"""`make clean` lists what it removes and asks; it keeps a person's own files in `data`."""

import builtins
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.clean import LISTED, Removal, clean
from devstack.landing import lay_out
from devstack.stack import ROOT
from tests.harness.terminal import Terminal, type_in


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `data` folder as set-up writes it."""
    data = tmp_path_factory.mktemp("laid-out") / "data"
    lay_out(data)
    (data / "done").write_text("flights and permits")
    return data


@pytest.fixture
def checkout(laid_out: Path, tmp_path: Path) -> Path:
    """A folder as set-up and a stack leave it, with some files of its user."""
    shutil.copytree(laid_out, tmp_path / "data")
    for table in ("nyc/flights_1", "nyc/delays_2"):
        metadata = tmp_path / ".sluice" / "lake" / table / "metadata"
        metadata.mkdir(parents=True)
        (metadata / "00000.metadata.json").write_text("{}")
    (tmp_path / ".sluice" / "temporal.db").write_text("runs")
    (tmp_path / ".sluice" / "nessie").mkdir()
    (tmp_path / ".venv").mkdir()
    (tmp_path / "pipelines").mkdir()
    return tmp_path


def test_it_says_what_goes_and_what_stays(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "data" / "mine.csv").write_text("id\n1\n")
    assert clean(checkout, yes=True) == 0
    out = capsys.readouterr().out
    assert "the lake .sluice/lake: 2 tables, 4 bytes" in out
    assert "the history of all runs" in out and "17 files that set-up wrote" in out
    assert out.endswith("What stays: 1 file that set-up did not write\n  data/mine.csv\nRemoved.\n")
    assert sorted(each.name for each in checkout.iterdir()) == ["data", "pipelines"]
    assert [each.name for each in (checkout / "data").rglob("*")] == ["mine.csv"]


def test_a_folder_without_files_of_a_person_is_left_as_it_came(checkout: Path) -> None:
    assert clean(checkout, yes=True) == 0
    assert [each.name for each in checkout.iterdir()] == ["pipelines"]


def test_files_that_a_person_changed_stay(checkout: Path) -> None:
    files = [checkout / "data" / name for name in ("flights/2013-01.csv", "permits/permits.csv")]
    for file in files:
        file.write_text("mine\n")
    lay_out(checkout / "data")
    assert clean(checkout, yes=True) == 0
    assert [file.read_text() for file in files] == ["mine\n", "mine\n"]
    (checkout / "data" / LISTED).unlink(missing_ok=True)
    lay_out(checkout / "data")
    assert [file.read_text() for file in files] == ["mine\n", "mine\n"], "nor does set-up write over them"


def test_files_that_no_list_names_stay(checkout: Path) -> None:
    (checkout / "data" / LISTED).unlink()
    assert clean(checkout, yes=True) == 0
    assert len(list((checkout / "data").rglob("*.csv"))) == 15


def test_links_are_not_followed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("target")
    (target / "kept.csv").write_text("kept")
    shutil.rmtree(checkout / ".venv")
    (checkout / ".venv").symlink_to(target)
    (checkout / "data" / "linked").symlink_to(target)
    assert clean(checkout, yes=True) == 0
    assert (target / "kept.csv").exists() and not os.path.lexists(checkout / ".venv")
    assert (checkout / "data" / "linked").is_symlink()


def test_files_that_a_person_moved_outside_and_linked_stay(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for name in ("data/flights", ".sluice/lake"):
        shutil.move(checkout / name, outside / Path(name).name)
        (checkout / name).symlink_to(outside / Path(name).name)
    before = sorted(outside.rglob("*"))
    assert clean(checkout, yes=True) == 0
    assert sorted(outside.rglob("*")) == before and not (checkout / ".sluice").exists()
    out = capsys.readouterr().out
    assert f"the lake .sluice/lake: a link to {outside / 'lake'}, which stays" in out and "data/flights\n" in out


def test_a_file_that_a_person_changes_while_the_command_asks_stays(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = checkout / "data" / "flights" / "2013-01.csv"
    type_in(monkeypatch, Terminal("y\n"))
    ask = builtins.input

    def change_and_answer(question: str) -> str:
        file.write_text("mine\n")
        return ask(question)

    monkeypatch.setattr(builtins, "input", change_and_answer)
    assert clean(checkout, yes=False) == 0
    assert file.read_text() == "mine\n" and not (checkout / ".sluice").exists()


@pytest.mark.parametrize("text", ["", "n", "later"])
def test_a_person_who_does_not_agree_loses_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    type_in(monkeypatch, Terminal(f"{text}\n"))
    before = Removal.plan(checkout)
    assert clean(checkout, yes=False) == 0
    assert Removal.plan(checkout) == before and "Nothing was removed." in capsys.readouterr().out


def test_a_person_who_agrees(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, Terminal("y\n"))
    assert clean(checkout, yes=False) == 0
    assert not (checkout / ".sluice").exists()
    assert clean(checkout, yes=False) == 0, "there is nothing to ask about"


def test_without_a_terminal_nothing_is_removed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, io.StringIO("y\n"))
    assert clean(checkout, yes=False) == 2
    assert (checkout / ".sluice").exists() and "`make clean YES=1`" in capsys.readouterr().err


def test_make_asks_by_the_program(tmp_path: Path) -> None:
    """The test uses a copy of the project that has nothing to remove."""
    for name in ("Makefile", "devstack", "sluice"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    (tmp_path / ".sluice").mkdir()
    refused = subprocess.run(["make", "clean"], cwd=tmp_path, stdin=subprocess.DEVNULL, check=False)
    assert refused.returncode == 2 and (tmp_path / ".sluice").exists()
    assert subprocess.run(["make", "clean", "YES=1"], cwd=tmp_path, check=False).returncode == 0
    assert not (tmp_path / ".sluice").exists()
