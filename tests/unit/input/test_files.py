"""The files of a run, and their identity."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from lakehouse.source_files import (
    absolute_source,
    base_path,
    check_unchanged,
    distinct_files,
    find_files,
    have_changed,
    identify_input,
    local,
)
from lakehouse.source_files.in_threads import Counter, map_in_threads
from lakehouse.source_files.listing import CHUNK
from lakehouse.source_files.object_store import store_identity
from lakehouse.source_files.store_errors import map_store_errors
from sluice.errors import InvalidInput, ServiceUnavailable
from sluice.pipeline.source import Source
from tests.harness.waiting import LIMIT


def names(source: Source) -> list[str]:
    return [Path(file.path).name for file in find_files(source)]


def test_a_path_without_files_is_refused_with_the_name_that_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id\n1\n")
    with pytest.raises(InvalidInput, match=r"there are no files at '.*order\.csv' \(did you mean 'orders\.csv'\?\)"):
        find_files(Source(path=f"{tmp_path}/order.csv"))
    (tmp_path / "months").mkdir()
    for name in ("2026-06.csv", "2026-07.csv.gz", "Orders-2026-05.csv"):
        (tmp_path / "months" / name).write_text("id\n1\n")
    with pytest.raises(InvalidInput, match=r"did you mean '2026-06\.csv'"):
        find_files(Source(path=f"{tmp_path}/months/2026-6.csv"))
    other_months = ("months/2026-04.csv", "months/orders-2026-04.csv")  # no typing mistakes
    for path in (f"{tmp_path}/{name}" for name in ("zzz.csv", "nowhere/orders.csv", *other_months)):
        with pytest.raises(InvalidInput, match=r"there are no files at '[^']*'$"):
            find_files(Source(path=path))


def test_files_directories_and_patterns(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_SUCCESS.csv", ".hidden.csv", "deep/c.csv", "_tmp/d.csv", "x [1].csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n")
    assert names(Source(path=f"{tmp_path}/a.csv")) == ["a.csv"]
    assert names(Source(path=f"{tmp_path}/?.csv")) == ["a.csv", "b.csv"]
    assert names(Source(path=f"{tmp_path}/**/*.csv")) == ["a.csv", "b.csv", "c.csv", "x [1].csv"]
    assert names(Source(path=f"{tmp_path}/*/*.csv")) == ["c.csv"]
    assert names(Source(path=f"{tmp_path}/de*", format="csv")) == ["c.csv"], "a folder that matches is read whole"
    assert names(Source(path=str(tmp_path), format="csv")) == ["a.csv", "b.csv", "c.csv", "x [1].csv"]
    assert names(Source(path=[f"file://{tmp_path}/a.csv", f"{tmp_path}/a.csv"])) == ["a.csv"]


def test_a_name_that_is_there_is_no_pattern(tmp_path: Path) -> None:
    for name in ("a[1].csv", "a1.csv", "in[12]/x?.csv", "in1/xy.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n")
    assert names(Source(path=f"{tmp_path}/a[1].csv")) == ["a[1].csv"]
    assert names(Source(path=f"{tmp_path}/in[12]/x?.csv")) == ["x?.csv"]
    assert names(Source(path=f"{tmp_path}/in[1]/x?.csv")) == ["xy.csv"]


@pytest.mark.parametrize("name", ["_a.csv", ".a.csv", "a.csv._COPYING_"])
def test_a_named_file_that_spark_would_ignore_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("id\n1\n")
    for path in (name, name.replace("a", "?")):
        with pytest.raises(InvalidInput, match="would be ignored by Spark"):
            find_files(Source(path=f"{tmp_path}/{path}", format="csv"))


def test_the_spelling_of_a_path_is_not_part_of_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\n")
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "moved.csv").symlink_to("in/a.csv")
    plain = identify_input(find_files(Source(path=f"{tmp_path}/in/a.csv")))
    for path in ("in/a.csv", "./in/../in/a.csv", f"file:{tmp_path}/in/a.csv", "link/a.csv", "moved.csv", "in/*.csv"):
        source = absolute_source(Source(path=[path, "in/*"], format="csv"))
        assert len(find_files(source)) == 1, path
        assert identify_input(find_files(source)) == plain, path


def test_two_files_of_equal_content_are_one_of_the_input(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    alone = identify_input(find_files(Source(path=str(tmp_path), format="csv")))
    (tmp_path / "b.csv").write_text("id\n1\n")
    files = find_files(Source(path=str(tmp_path), format="csv"))
    loaded, copies = distinct_files(files)
    assert ([Path(each.path).name for each in loaded], [Path(each.path).name for each in copies]) == (
        ["a.csv"],
        ["b.csv"],
    )
    assert identify_input(files) == alone


def test_equal_content_in_folders_that_are_columns_is_not_the_same(tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "part.csv").write_text("id\n1\n")
    loaded, copies = distinct_files(find_files(Source(path=str(tmp_path), format="csv")))
    assert (len(loaded), copies) == (2, [])
    loaded, copies = distinct_files(find_files(Source(path=f"{tmp_path}/*/*.csv", options={"basePath": str(tmp_path)})))
    assert (len(loaded), copies) == (2, [])


def test_folders_behind_links_are_read_and_links_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b.csv").write_text("id\n1\n")
    (tmp_path / "in" / "away").symlink_to("../other")
    (tmp_path / "in" / "round").symlink_to(".")
    assert names(Source(path=f"{tmp_path}/in", format="csv")) == ["b.csv"]
    (tmp_path / "in" / "lost.csv").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="a symbolic link that leads nowhere"):
        find_files(Source(path=f"{tmp_path}/in", format="csv"))


def test_the_identity_is_the_content_not_the_time(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n1\n")
    os.utime(file, (1, 1))
    before = identify_input(find_files(Source(path=str(file))))
    os.utime(file, (2, 2))
    assert identify_input(find_files(Source(path=str(file)))) == before
    file.write_text("id\n2\n")
    os.utime(file, (1, 1))
    assert identify_input(find_files(Source(path=str(file)))).digest != before.digest
    assert (before.files, before.bytes) == (1, 5)


def test_a_large_file_is_identified_by_its_content_too(tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    file.write_bytes(b"id\n" + b"1\n" * (33 * 1024 * 1024))
    os.utime(file, (1, 1))
    (before,) = find_files(Source(path=str(file)))
    with file.open("r+b") as changed:
        changed.seek(-2, os.SEEK_END)
        changed.write(b"2")
    os.utime(file, (1, 1))
    (after,) = find_files(Source(path=str(file)))
    assert (before.size, before.identity) != (after.size, after.identity)
    assert before.size == after.size


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.write_text("id\n2\n"), "replaced by other content"),
        (lambda file: file.write_text("id\n1\n2\n"), "changed from 5 to 7 bytes"),
        (lambda file: file.unlink(), "was removed or renamed"),
    ],
)
def test_a_file_that_is_not_what_it_was_is_named(tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    source = Source(path=str(tmp_path), format="csv")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n1\n")
        os.utime(tmp_path / name, (1, 1))
    files = find_files(source)
    check_unchanged(files, source)
    change(tmp_path / "b.csv")
    if (tmp_path / "b.csv").exists():
        os.utime(tmp_path / "b.csv", (1, 1))
    with pytest.raises(InvalidInput, match=rf"b\.csv .*{words}.* start the run again.*A landing zone tries again by"):
        check_unchanged(files, source)


@pytest.mark.parametrize("content", [None, "", "PAR1 and half", "PAR1 other size PAR1", "PAR1 OTHER PAR1"])
def test_a_file_is_compared_with_what_it_was_whatever_its_format_has_to_say_of_it(
    tmp_path: Path, content: str | None
) -> None:
    source, file = Source(path=f"{tmp_path}/*.parquet"), tmp_path / "a.parquet"
    file.write_text("PAR1 whole PAR1")
    files = find_files(source)
    assert not have_changed(files, source)
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    assert have_changed(files, source)


@pytest.mark.parametrize("kind", ["grows", "vanishes"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n" + "1\n" * CHUNK)  # more than one piece
    listed = local.describe_local(file)
    pieces = listed.read()
    next(pieces)
    if kind == "grows":
        with file.open("a") as appended:
            appended.write("4\n")
    else:
        file.unlink()
    with pytest.raises(InvalidInput, match=r"a\.csv (changed|was removed).* start the run again"):
        list(pieces)


def test_files_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "not.parquet").write_text("PAR1 but no more")
    (tmp_path / "not.orc").write_text("nothing of the kind")
    for name, words in {
        "none-*.csv": "there are no files",
        "empty.csv": "empty",
        "not.parquet": "not a complete parquet",
        "not.orc": "not an ORC file",
    }.items():
        with pytest.raises(InvalidInput, match=words):
            find_files(Source(path=str(tmp_path / name)))


def test_a_name_that_is_not_text(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")).write_text("id\n1\n")
    with pytest.raises(InvalidInput, match="is not UTF-8, so that Spark cannot open the file"):
        find_files(Source(path=str(tmp_path), format="csv"))


def test_files_of_two_formats_need_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.json").write_text('{"id": 1}\n')
    with pytest.raises(InvalidInput, match=r"b\.json is json by its name, but other files are csv: set source\.format"):
        find_files(Source(path=[f"{tmp_path}/a.csv", f"{tmp_path}/b.json"]))


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_source(Source(path="in/*.csv")).path == f"{tmp_path}/in/*.csv"
    assert absolute_source(Source(path="in/*.csv"), Path("/data")).path == "/data/in/*.csv"
    assert absolute_source(Source(path="s3://b/x")).path == "s3://b/x"
    assert base_path(Source(path=str(tmp_path))) == str(tmp_path)
    assert base_path(Source(path=f"{tmp_path}/*.csv")) is None


def test_files_are_read_side_by_side_with_progress_and_can_be_stopped() -> None:
    both = threading.Barrier(2, timeout=LIMIT)
    progress: list[str] = []

    def work(number: int, counter: Counter) -> int:
        both.wait()
        counter.add(1_000_000)
        both.wait()
        return number * 10

    assert map_in_threads(work, [1, 2], progress.append, "read", interval=0.01) == [10, 20]

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    endless = threading.Event()

    def never_done(_: int, counter: Counter) -> None:
        while not endless.wait(0.01):
            counter.add(1)

    with pytest.raises(KeyboardInterrupt):
        map_in_threads(never_done, [1, 2, 3], stop, "read", interval=0.01)


def test_objects_are_listed_as_files_are(bucket: MemoryStore) -> None:
    for key in ("in/a.csv", "in/b.csv", "in/deep/c.csv", "in/_d.csv", "in/a[1].csv", "in2/e.csv", "x/in/a.csv"):
        obstore.put(bucket, key, key.encode())
    obstore.put(bucket, "in/folder", b"")
    assert names(Source(path="s3://b/in/a.csv")) == ["a.csv"]
    assert names(Source(path="s3://b/in", format="csv")) == ["a.csv", "a[1].csv", "b.csv", "c.csv"]
    assert names(Source(path="s3://b/in/?.csv")) == ["a.csv", "b.csv"]
    assert names(Source(path="s3a://b/in/a[1].csv")) == ["a[1].csv"]
    assert names(Source(path="s3://b/in*/*.csv")) == ["a.csv", "a[1].csv", "b.csv", "e.csv"]
    (file,) = find_files(Source(path=["s3://b/in/a.csv", "s3a://b/in/a.csv"]))
    assert file.path == "s3://b/in/a.csv"
    with pytest.raises(InvalidInput, match="would be ignored by Spark"):
        find_files(Source(path="s3://b/in/_d.csv"))
    with pytest.raises(InvalidInput, match="there are no files"):
        find_files(Source(path="s3://b/nothing*.csv"))


def test_an_object_that_was_replaced_is_named(bucket: MemoryStore) -> None:
    source = Source(path="s3://b/in/a.csv")
    obstore.put(bucket, "in/a.csv", b"id\n1\n")
    files = find_files(source)
    check_unchanged(files, source)
    obstore.put(bucket, "in/a.csv", b"id\n2\n")
    with pytest.raises(InvalidInput, match=r"s3://b/in/a\.csv was replaced"):
        check_unchanged(files, source)
    obstore.delete(bucket, "in/a.csv")
    with pytest.raises(InvalidInput, match="was removed"):
        check_unchanged(files, source)


def test_what_a_store_says_of_an_object() -> None:
    """A checksum is the same wherever the content lies. Any other ETag refers to one object only."""
    checksum = "9E107D9D372BB6826BD81D3542A419D6"
    assert store_identity("s3://b/x", 5, f'"{checksum}"', None) == store_identity("s3a://c/y", 5, checksum.lower(), "v")
    assert store_identity("s3://b/x", 5, f"{checksum}-2", None) != store_identity("s3://b/x", 5, checksum, None)
    assert store_identity("s3://b/x", 6, checksum, None) != store_identity("s3://b/x", 5, checksum, None)
    assert store_identity("s3://b/x", 5, '"0x8D4"', None) == store_identity("s3a://b/x", 5, '"0x8D4"', None)
    different = {("s3://b/y", '"0x8D4"', None), ("s3://b/x", '"0x8D5"', None), ("s3://b/x", '"0x8D4"', "2")}
    for path, etag, version in different:
        assert store_identity(path, 5, etag, version) != store_identity("s3://b/x", 5, '"0x8D4"', None)
    assert store_identity("s3://b/x", 5, None, None) == "", "then its content is read"


def test_a_store_that_refuses_and_one_that_does_not_answer() -> None:
    def fail(status: int) -> None:
        with map_store_errors("s3://b/x"):
            raise GenericError(f"Server returned non-2xx status code: {status} Why: <xml/>")

    with pytest.raises(InvalidInput, match=r"s3://b/x cannot be read: .* 404 Why"):
        fail(404)
    for status in (503, 429, 408):
        with pytest.raises(ServiceUnavailable, match="the store of s3://b/x does not answer"):
            fail(status)
    messages = set()
    for passed in ("958.72µs", "1.736945824s, after 5 retries, max_retries: 5, retry_timeout: 30s "):
        with pytest.raises(ServiceUnavailable) as refused, map_store_errors("s3://b/x"):
            raise GenericError(f"Error performing GET http://b/x in {passed} - status code: 503 Service Unavailable")
        messages.add(" ".join(str(refused.value).split()))
    assert len(messages) == 1, "people are notified of each other one"
