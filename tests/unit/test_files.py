"""The files that a run loads, and their identity."""

import os
from pathlib import Path

import pytest

from lakehouse.source_files import absolute_source, base_path, find_files, identify_input
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source


def names(source: Source) -> list[str]:
    return [Path(file.path).name for file in find_files(source)]


def test_files_directories_and_patterns(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_SUCCESS.csv", ".hidden.csv", "deep/c.csv", "_tmp/d.csv", "x [1].csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n")
    assert names(Source(path=f"{tmp_path}/a.csv")) == ["a.csv"]
    assert names(Source(path=f"{tmp_path}/?.csv")) == ["a.csv", "b.csv"]
    assert names(Source(path=str(tmp_path), format="csv")) == ["a.csv", "b.csv", "c.csv", "x [1].csv"]
    assert names(Source(path=f"{tmp_path}/x [1].csv")) == ["x [1].csv"]
    assert names(Source(path=[f"file://{tmp_path}/a.csv", f"{tmp_path}/a.csv"])) == ["a.csv"]


def test_the_identity_is_the_content_not_the_time(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n1\n")
    before = identify_input(find_files(Source(path=str(file))))
    os.utime(file, (1, 1))
    assert identify_input(find_files(Source(path=str(file)))) == before
    file.write_text("id\n2\n")
    assert identify_input(find_files(Source(path=str(file)))).digest != before.digest
    assert (before.files, before.bytes) == (1, 5)


def test_files_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "not.parquet").write_text("PAR1 but no more")
    for name, words in {
        "none-*.csv": "there are no files",
        "empty.csv": "empty",
        "not.parquet": "no whole parquet",
    }.items():
        with pytest.raises(InvalidInput, match=words):
            find_files(Source(path=str(tmp_path / name)))


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_source(Source(path="in/*.csv")).path == f"{tmp_path}/in/*.csv"
    assert absolute_source(Source(path="in/*.csv"), Path("/data")).path == "/data/in/*.csv"
    assert absolute_source(Source(path="s3://b/x")).path == "s3://b/x"
    assert base_path(Source(path=str(tmp_path))) == str(tmp_path)
    assert base_path(Source(path=f"{tmp_path}/*.csv")) is None
