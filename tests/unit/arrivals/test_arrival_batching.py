"""The grouping of arrived files into batches, and the time of the next listing."""

import pytest

from sluice.arrivals.batching import Batching, WaitingFile, plan_batches
from sluice.arrivals.limits import room_for_batches
from sluice.contracts.arrivals import Batch, BatchRef
from sluice.durations import format_duration, seconds
from sluice.errors import InvalidPipeline
from sluice.pipeline.arrival import Arrival
from sluice.pipeline.file import parse_pipeline

FILE = """\
name: rides
write: {source: {format: csv}}
tables: [t.rides]
arrival: {from: landing/rides/, settle: 1m, batch: {files: 2, bytes: 1KiB, wait: 10m}, expect: every 24h}
"""


def arrival(**more: object) -> Arrival:
    stated = {"from": "landing/", "settle": 60, "batch": {"files": 2, "bytes": 1000, "wait": 600}, **more}
    return Arrival.model_validate(stated)


def file(name: str, arrived: float, changed: float | None = None, size: int = 10) -> WaitingFile:
    return WaitingFile(f"/landing/{name}", size, arrived, arrived if changed is None else changed, "")


def names(planned: Batching) -> list[list[str]]:
    return [[each.path.removeprefix("/landing/") for each in batch] for batch in planned.batches]


def test_a_batch_closes_when_nothing_came_for_a_while() -> None:
    files = [file("a", 0)]
    assert plan_batches(files, {}, arrival(), 59.9) == Batching([], 60)
    planned = plan_batches(files, {}, arrival(), 60)
    assert (names(planned), planned.list_at) == ([["a"]], None)


def test_a_file_that_changes_is_not_loaded_and_holds_back_what_is_beside_it() -> None:
    planned = plan_batches([file("a", 0), file("b", 0, changed=50)], {}, arrival(), 70)
    assert (names(planned), planned.list_at) == ([], 110)
    assert names(plan_batches([file("a", 0), file("b", 0, changed=50)], {}, arrival(), 110)) == [["a", "b"]]


def test_a_batch_that_waits_too_long_closes_without_the_files_that_still_change() -> None:
    planned = plan_batches([file("a", 0), file("b", 0, changed=599)], {}, arrival(), 600)
    assert (names(planned), planned.list_at) == ([["a"]], 659)


def test_a_file_that_changes_for_ever_closes_no_batch_of_others() -> None:
    log = file("log", 0, changed=9990)
    planned = plan_batches([log, file("a", 9900), file("b", 9980)], {}, arrival(), 10000)
    assert (names(planned), planned.list_at) == ([], 10040)
    log = file("log", 0, changed=10490)
    assert names(plan_batches([log, file("a", 9900)], {}, arrival(), 10500)) == [["a"]], "it waited for ten minutes"


def test_a_full_batch_is_loaded_although_files_still_arrive() -> None:
    planned = plan_batches([file("b", 1), file("a", 0), file("c", 2), file("d", 65)], {}, arrival(), 70)
    assert (names(planned), planned.list_at) == ([["a", "b"]], 125)
    large = [file("a", 0, size=900), file("b", 0, size=900), file("c", 69)]
    assert names(plan_batches(large, {}, arrival(), 70)) == [["a"]]


def test_a_file_that_is_larger_than_a_batch_has_one_of_its_own() -> None:
    assert names(plan_batches([file("a", 0, size=5000), file("b", 0)], {}, arrival(), 70)) == [["a"], ["b"]]


def test_a_manifest_closes_the_batch_of_its_folder_alone() -> None:
    files = [file("x/a", 0), file("x/b", 9), file("x/c", 9), file("y/d", 0)]
    planned = plan_batches(files, {"/landing/x": 10}, arrival(manifest="_SUCCESS"), 10)
    assert (names(planned), planned.list_at) == ([["x/a", "x/b"], ["x/c"]], None)


def test_a_file_that_comes_after_the_manifest_has_to_settle() -> None:
    files, complete = [file("x/a", 0), file("x/late", 20)], {"/landing/x": 10.0}
    planned = plan_batches(files, complete, arrival(manifest="_SUCCESS"), 30)
    assert (names(planned), planned.list_at) == ([["x/a"]], 80)
    assert names(plan_batches(files[1:], complete, arrival(manifest="_SUCCESS"), 80)) == [["x/late"]]


def test_a_manifest_in_a_store_closes_its_batch() -> None:
    waiting = WaitingFile("s3://lake/x/a.csv", 1, 0, 0, "")
    assert waiting.folder == "s3://lake/x"
    planned = plan_batches([waiting], {"s3://lake/x": 0}, arrival(manifest="_SUCCESS"), 0)
    assert planned.batches == [[waiting]]


def test_paths_of_a_batch_fit_into_the_request_of_its_run() -> None:
    long = [file(f"{number:04}" + "x" * 996, 0) for number in range(600)]
    planned = plan_batches(long, {}, arrival(batch={"files": 2000, "bytes": "1GiB", "wait": 600}), 70)
    assert sum(map(len, planned.batches)) == 600 and len(planned.batches) == 3


def test_nothing_there_means_no_next_listing() -> None:
    assert plan_batches([], {}, arrival(), 0) == Batching([], None)


def test_the_source_is_the_landing_zone_unless_it_states_a_path() -> None:
    pipeline = parse_pipeline(FILE, "rides.yml")
    assert pipeline.write.source and pipeline.write.source.paths == ["landing/rides/"]
    assert pipeline.arrival and pipeline.arrival.expect == 86400 and pipeline.arrival.batch.bytes == 1024
    stated = parse_pipeline(FILE.replace("{format: csv}", "{format: csv, path: landing/*.csv}"), "rides.yml")
    assert stated.write.source and stated.write.source.paths == ["landing/*.csv"]
    assert pipeline.model_copy(update={"arrival": None}).digest == pipeline.digest


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("settle: 1m", "setle: 1m", "rides.yml:4: unknown key 'setle' (did you mean 'settle'?)"),
        ("bytes: 1KiB", "bytes: many", "'many' is not a size"),
        ("files: 2", "files: 5000", "less than or equal to 2000"),
        ("settle: 1m", "manifest: a/_SUCCESS", "is not a valid name of a file"),
        (
            "{source: {format: csv}}",
            "{source: {format: csv}, mode: overwrite}",
            "each batch would replace the one before",
        ),
        ("{source: {format: csv}}", "{mode: sql, statements: [DELETE FROM t.rides]}", "reads tables, not a source"),
        ("{source: {format: csv}}", "{job: mine.py}", "a program of yours may read others"),
        ("{format: csv}", "{}", "set write.source.format"),
        ("settle: 1m", "overwritten: perhaps", "'load', 'ignore' or 'alert'"),
    ],
)
def test_what_is_not_valid_is_refused(change: str, to: str, message: str) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        parse_pipeline(FILE.replace(change, to), "rides.yml")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("arrival", "message"),
    [
        ("landing/", "arrival: 'landing/' is not a mapping: write {from: landing/}"),
        ("{}", "'from' is missing"),
        ("{from: [a/, b/]}", "arrival.from: input should be a text"),
        ("{from: ''}", "arrival.from: String should have at least 1 character"),
        ("{from: 'http://x/y'}", "http://x/y is neither a folder nor in a store that Sluice can list: s3"),
        ("{from: in/, batch: 100}", "arrival.batch: 100 is not a mapping; valid keys: files, bytes, wait"),
    ],
)
def test_an_arrival_that_is_not_valid_is_the_only_error(arrival: str, message: str) -> None:
    lines = FILE.splitlines()[:-1]
    with pytest.raises(InvalidPipeline) as refused:
        parse_pipeline("\n".join([*lines, f"arrival: {arrival}"]), "rides.yml")
    assert message in str(refused.value) and str(refused.value).count("rides.yml:") == 1


def test_batches_are_not_merged_side_by_side() -> None:
    """The older batch may end later, and its rows would replace newer ones."""
    merging = FILE.replace("{source: {format: csv}}", "{source: {format: csv}, mode: merge, keys: [id]}")
    assert parse_pipeline(merging, "rides.yml").arrival
    with pytest.raises(InvalidPipeline, match="at_once: with `mode: merge`, rows of a later load replace rows"):
        parse_pipeline(merging.replace("settle: 1m", "at_once: 2"), "rides.yml")


def test_a_plan_of_a_deploy_shows_every_key() -> None:
    stated = {"from": "in/", "manifest": "_SUCCESS", "expect": "every 24h", "after": "move", "move_to": "out/"}
    shown = Arrival.model_validate(
        {**stated, "on_failure": "pause", "overwritten": "load", "follow_links": True}
    ).properties()
    assert shown == {
        **{"from": "in/", "manifest": "_SUCCESS", "settle": "1m", "batch": "500 files, 10.0 GiB, 15m", "look": "5m"},
        **{"follow links": "yes"},
        **{"overwritten": "load", "at once": "1", "on failure": "pause", "expect": "every 1d", "after": "move to out/"},
    }
    assert len(Arrival.model_fields) == len(shown) + 1, "move_to is shown with after"


@pytest.mark.parametrize("text", ["90s", "15m", "1d", "0.5s", "1234567s", "100000.25s"])
def test_a_duration_that_is_written_is_read_again(text: str) -> None:
    assert format_duration(seconds(text)) == text


def test_a_zone_takes_no_more_batches_than_people_can_decide_about() -> None:
    def held(number: int, state: str) -> list[Batch]:
        ref = BatchRef(id="a", location="l", files=1, bytes=1)
        return [Batch.model_validate({"ref": ref, "state": state})] * number

    assert room_for_batches(held(499, "kept out")) == 1
    assert room_for_batches(held(500, "waiting")) == 0
    assert room_for_batches(held(500, "set aside")) == 500
    assert room_for_batches(held(1990, "set aside")) == 10
    assert room_for_batches(held(2000, "set aside")) == 0
