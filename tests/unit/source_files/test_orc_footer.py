"""The footers of ORC files."""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from lakehouse.source_files.foreign_times import foreign_times
from lakehouse.source_files.local import describe_local
from lakehouse.source_files.orc_footer import read_orc_footer
from sluice.errors import InvalidInput


def _write(path: Path, **columns: Any) -> Path:
    orc.write_table(pa.table(columns), str(path))
    return path


def test_only_the_end_of_a_file_is_read(tmp_path: Path) -> None:
    names = [f"{number:x}-{number**9:x}" for number in range(300_000)]
    file = describe_local(_write(tmp_path / "a.orc", name=names))
    sizes: list[int] = []

    def read_tail(size: int) -> bytes:
        sizes.append(size)
        return file.read_tail(size)

    assert read_orc_footer(replace(file, read_tail=read_tail)).rows == len(names)
    assert sum(sizes) < file.size / 10


def test_a_footer_that_is_longer_than_the_first_read(tmp_path: Path) -> None:
    many = {f"column_{number}_{'x' * 60}": [number * 1.5] for number in range(2000)}
    assert read_orc_footer(describe_local(_write(tmp_path / "a.orc", **many))).rows == 1


@pytest.mark.parametrize("content", [b"ORC", b"ORC" + b"\xff" * 100, b"ORC" + b"\0" * 200_000])
def test_a_file_that_is_no_whole_orc_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.orc").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.orc is not a complete orc file"):
        read_orc_footer(describe_local(tmp_path / "a.orc"))


def test_a_large_file_without_a_footer_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "a.orc").open("wb") as out:
        out.write(b"ORC")
        out.truncate(2**30)
    file = describe_local(tmp_path / "a.orc")

    def read_tail(size: int) -> bytes:
        assert size < 2**27
        return file.read_tail(size)

    with pytest.raises(InvalidInput, match="not a complete orc file"):
        read_orc_footer(replace(file, read_tail=read_tail))


def test_files_are_grouped_by_their_columns_of_times(tmp_path: Path) -> None:
    day, time = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1)
    nested = pa.array([[{"t": time}]], pa.list_(pa.struct({"t": pa.timestamp("us")})))
    files = {
        "none": _write(tmp_path / "1.orc", id=[1]),
        "day": _write(tmp_path / "2.orc", id=[1], d=[day]),
        "days": _write(tmp_path / "3.orc", d=[day], name=["x"]),
        "nested": _write(tmp_path / "4.orc", l=nested, name=["x"]),
    }
    groups = foreign_times({name: read_orc_footer(describe_local(path)).times for name, path in files.items()})
    assert [(group.kind, group.columns, group.files) for group in groups] == [
        ("orc_without_calendar", ["d"], ["day", "days"]),
        ("orc_without_calendar", ["l"], ["nested"]),
    ]


@pytest.mark.parametrize("name", ["g`h", "`m`", "k``l"])
def test_a_name_with_a_backtick(tmp_path: Path, name: str) -> None:
    """Spark reads the column g`h as g."""
    nested = pa.array([[{name: 1}]], pa.list_(pa.struct({name: pa.int32()})))
    for columns in ({name: [1]}, {"nested": nested}):
        path = _write(tmp_path / "a.orc", **columns)
        with pytest.raises(InvalidInput) as refused:
            read_orc_footer(describe_local(path))
        assert str(refused.value).startswith(f"{path}: the name of the column or field {name!r} has a backtick")
