"""The index of the files that main has: it is rebuilt, shared, and follows manifests that are missing or altered."""

import sqlite3
from pathlib import Path
from threading import Thread

import pytest
from temporalio.exceptions import ApplicationError

from activities.lake.list_files import ListFilesActivity
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.source_files import find_files
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult
from sluice.input.held_files import WantedFile
from sluice.pipeline.source import Source
from tests.harness.activity import run_activity
from tests.harness.loading_run import TABLE, Folder, roll_back


async def test_the_index_is_built_again_where_it_is_missing_damaged_or_of_another_history(
    folder: Folder, tmp_path: Path
) -> None:
    folder.file("a.csv", "1")
    await folder.run().load()
    (index,) = (tmp_path / "tables" / "home").rglob("*.sqlite")

    async def refuses() -> None:
        with pytest.raises(ApplicationError, match=r"already published: loaded into t\.x by run w-r1"):
            await folder.run().write()

    index.unlink()
    await refuses()
    index.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    await refuses()
    with sqlite3.connect(index) as database:
        database.execute("DROP TABLE files")
    await refuses()
    with sqlite3.connect(index) as database:
        database.execute("UPDATE commits SET hash = hash || 'x'")
        database.execute("DELETE FROM files")
    await refuses()
    with sqlite3.connect(index) as database:
        database.execute("PRAGMA user_version = 999")
    await refuses()


async def test_a_manifest_that_is_missing_or_altered_is_refused_until_it_is_restored(
    folder: Folder, tmp_path: Path
) -> None:
    folder.file("a.csv", "1")
    first = await folder.run().load()
    path = Path(first.manifest.location.removeprefix("file://"))
    content = path.read_bytes()
    fresh = LoadedFiles(folder.lake.catalog, folder.lake.manifests, tmp_path / "other home")
    folder.lake.loaded_files = fresh
    for damage in (path.unlink, lambda: path.write_bytes(content.replace(b"a.csv", b"b.csv"))):
        damage()
        with pytest.raises(ApplicationError, match=r"files that commit .* are unknown.* --again") as refused:
            await folder.run().write()
        assert refused.value.type == "ManifestUnreadable"
    listed: ListFilesResult = run_activity(ListFilesActivity(folder.lake.catalog, fresh).list_files, ListFilesInput())
    assert listed.unknown
    assert fresh.find(["t.other"], [WantedFile("x", "x")]) == []  # other tables are not affected
    assert (await folder.run(again=True).write())[1].files == 1
    path.write_bytes(content)
    with pytest.raises(ApplicationError, match="already published"):
        await folder.run().write()


async def test_a_manifest_in_a_store_that_cannot_be_reached_concerns_its_own_tables_alone(
    folder: Folder, tmp_path: Path
) -> None:
    """In an earlier version, a run into a lake on S3 stopped all runs of a worker that cannot reach that store."""
    folder.file("a.csv", "1")
    first = await folder.run().load()
    path = Path(first.manifest.location.removeprefix("file://"))
    path.unlink()
    path.mkdir()  # opening it fails, but not because it is missing
    fresh = LoadedFiles(folder.lake.catalog, folder.lake.manifests, tmp_path / "other home")
    assert fresh.find(["t.other"], [WantedFile("x", "x")]) == []
    folder.lake.loaded_files = fresh
    with pytest.raises(ApplicationError, match="cannot be read now") as refused:
        await folder.run().write()
    assert refused.value.type == "ServiceUnavailable" and not refused.value.non_retryable


async def test_many_threads_and_processes_may_share_an_index(folder: Folder, tmp_path: Path) -> None:
    for number in range(20):
        folder.file(f"{number}.csv", str(number))
        await folder.run(f"{number}.csv").load()
    catalog, manifests = folder.lake.catalog, folder.lake.manifests
    files = find_files(Source(path=str(folder.path), format="csv"))
    wanted = [WantedFile(file.path, file.identity) for file in files]
    answers: list[int] = []

    def ask() -> None:
        loaded = LoadedFiles(catalog, manifests, tmp_path / "shared")
        answers.append(len(loaded.find([TABLE], wanted)))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [20] * 8


async def _load_all(folder: Folder) -> list[str]:
    """Load the files of the folder in order; return the names of those that the run loaded."""
    await folder.run("*.csv", order_matters=True).load()
    run_id = folder.lake.loaded_files.list_files("", [], 1)[0][0].file.run_id
    loads = folder.lake.loaded_files.list_files("r.run_id = ?", [run_id], -1)[0]
    return sorted(Path(each.file.path).name for each in loads)


async def test_a_path_that_was_left_out_is_loaded_when_its_earlier_content_comes_back(folder: Folder) -> None:
    """Both files had 10, and then 20. Now `b.csv` has 10 again, which is newer than 20."""
    for price in ("10", "20"):
        folder.file("a.csv", price)
        folder.file("b.csv", price)
        assert await _load_all(folder) == ["a.csv"]
    folder.file("b.csv", "10")
    assert await _load_all(folder) == ["b.csv"]


async def test_a_roll_back_of_a_later_run_keeps_what_earlier_runs_left_out(folder: Folder) -> None:
    """In an earlier version, `b.csv` was loaded once more after the roll-back, and 20 stood over 30."""
    for price in ("10", "20"):
        folder.file("a.csv", price)
        folder.file("b.csv", price)
        assert await _load_all(folder) == ["a.csv"]
    for name, price in {"c.csv": "30", "d.csv": "40"}.items():
        folder.file(name, price)
        assert await _load_all(folder) == [name]
    roll_back(folder.lake, "back", folder.lake.loaded_files.list_files("", [], 1)[0][0].file.run_id)
    folder.file("d.csv", "50")
    assert await _load_all(folder) == ["d.csv"]


async def test_a_table_that_was_created_again_knows_what_runs_left_out_since(folder: Folder) -> None:
    for name in ("a.csv", "b.csv"):
        folder.file(name, "10")
    assert await _load_all(folder) == ["a.csv"]
    folder.lake.recreate(TABLE)
    assert await _load_all(folder) == ["a.csv"], "b.csv is left out once more, in the new table"
    for name, price in {"c.csv": "30", "d.csv": "40"}.items():
        folder.file(name, price)
        assert await _load_all(folder) == [name]


async def test_a_path_whose_new_content_was_left_out_is_not_loaded_by_the_next_run(folder: Folder) -> None:
    folder.file("b.csv", "10")
    assert await _load_all(folder) == ["b.csv"]
    folder.file("a.csv", "20")
    folder.file("b.csv", "20")
    assert await _load_all(folder) == ["a.csv"]
    folder.file("c.csv", "30")
    assert await _load_all(folder) == ["c.csv"], "b.csv did not change, and its rows are older than those of c.csv"
