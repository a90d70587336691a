"""The archive of Spark's classes is made in the background: by one process at a time, which can be ended."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.set_up import __main__ as command
from devstack.set_up.spark_archive import SparkArchive
from devstack.set_up.step import Step
from tests.harness.processes import wait_for
from tests.harness.set_up_steps import step

_PROGRAM = """
import subprocess, sys, time
from pathlib import Path

home = Path(sys.argv[2])
spark = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(home, "spark.new").write_text(str(spark.pid))
Path(home, "spark.new").rename(home / "spark")
while not Path(home, "may-end").exists():
    time.sleep(0.01)
spark.kill()
sys.path.insert(0, sys.argv[3])
from devstack.set_up.spark_archive import SparkArchive

SparkArchive(*map(Path, sys.argv[1:3])).stamp.write()
"""


class Done:
    """A plan whose steps are done."""

    def __init__(self, *_: object) -> None:
        pass

    def missing(self) -> list[Step]:
        return []


class New:
    """A plan with a step whose input is new."""

    def __init__(self, _: Path, home: Path, __: str) -> None:
        self._step = step(home, "packages")

    def missing(self) -> list[Step]:
        return [self._step]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def archive(tmp_path: Path, home: Path) -> Iterator[SparkArchive]:
    """The archive of a copy of the project whose program waits for permission to end, with another process."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "{tmp_path}/program.py" "$3" "$4" "{Path.cwd()}"\n')
    python.chmod(0o755)
    (tmp_path / "program.py").write_text(_PROGRAM)
    archive = SparkArchive(tmp_path, home)
    yield archive
    archive.stop()


def _spark(home: Path) -> int:
    """Return the identifier of the process that stands for Spark."""
    wait_for((home / "spark").exists)
    return int((home / "spark").read_text())


def _runs(process: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_one_process_makes_it_once(archive: SparkArchive, home: Path) -> None:
    assert archive.start()
    assert not archive.start(), "a second set-up beside the first"
    _spark(home)
    (home / "may-end").touch()
    archive.wait()
    assert archive.stamp.is_valid() and not archive.start()
    assert (home / "cds").is_dir()


def test_its_end_ends_its_spark_and_another_set_up_starts_it_again(archive: SparkArchive, home: Path) -> None:
    assert archive.start()
    spark = _spark(home)
    archive.stop()
    wait_for(lambda: not _runs(spark))
    archive.stop()
    assert not archive.stamp.is_valid() and archive.start()


def test_a_discarded_archive_is_made_again(archive: SparkArchive, home: Path) -> None:
    (home / "cds").mkdir()
    size = home / "cds" / "1.size"
    size.touch()
    archive.stamp.write()
    assert not archive.start()
    size.unlink()
    assert archive.start()


def test_a_set_up_ends_the_process_whose_packages_it_replaces(
    archive: SparkArchive, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.start()
    first = _spark(home)
    (home / "spark").unlink()
    monkeypatch.setattr(command, "Plan", New)
    assert command.set_up(tmp_path, home, "use") == command.OK
    assert _spark(home) != first, "another process makes the archive of the new packages"


def test_further_jars_need_another_archive(archive: SparkArchive, home: Path) -> None:
    """Spark does not use an archive that was made without the jars for S3."""
    archive.stamp.write()
    installed = home / "jars" / "s3" / "installed"
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert not archive.stamp.is_valid() and archive.start()


@pytest.mark.parametrize("purpose", ["use", "develop", "python", "s3", "store"])
def test_only_who_starts_spark_gets_one(
    purpose: str,
    archive: SparkArchive,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "Plan", Done)
    assert command.set_up(tmp_path, home, purpose) == command.OK
    is_started = purpose != "python"
    assert ("An archive of Spark's classes is made in the background" in capsys.readouterr().out) == is_started
    assert archive.log.exists() == is_started
