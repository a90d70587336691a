"""The files that a run loads, the manifest that lists them, and the records of loaded files in main's commits."""

import pytest
from pydantic import ValidationError

from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.input import PublicationCheck
from sluice.contracts.run_request import InputFile, RunInput, RunRequest
from sluice.contracts.selected_input import ManifestRef
from sluice.errors import AlreadyPublished, InvalidInput, ManifestUnreadable
from sluice.input.held_files import HeldFile, LoadedFile, WantedFile
from sluice.input.manifest import InputManifest, ManifestFile, ManifestHeader, manifest_digest, read_manifest
from sluice.input.publication_check import check_of_quarantine, check_of_run
from sluice.input.publications import effects_of_rollback, read_input_record
from sluice.input.selection import (
    asks_what_was_loaded,
    describe_overlap,
    describe_selection,
    name_left_out,
    select_files,
)
from sluice.pipeline.model import Pipeline
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import input_properties, kept_input_properties
from sluice.publishing.commit_properties import PIPELINE, ROLLED_BACK, RUN_ID

A, B = (InputFile(path=f"/in/{name}.csv", size=3, identity=f"id-{name}") for name in "ab")
COPY = InputFile(path="/in/copy.csv", size=3, identity=A.identity)
LOAD = LoadedFile("t.x", "/old/a.csv", "r1", "w-1", "c" * 64, "2026-01-02T03:04:05+00:00", A.identity)
LOADED = {A.path: LOAD, COPY.path: LOAD}
REF = ManifestRef(location="file:///lake/a1.jsonl", digest="d" * 64)


def test_what_was_loaded_is_left_out_and_named() -> None:
    selected = select_files([A, B], LOADED, "skip")
    assert [(file.path, file.left_out, file.by) for file in selected] == [
        ("/in/a.csv", "loaded before", "r1"),
        ("/in/b.csv", None, ""),
    ]
    assert describe_selection(selected, LOADED) == ("1 file loaded, 1 left out: loaded before by run w-1 (/in/a.csv)")
    (left_out,) = name_left_out(selected, LOADED)
    assert left_out.path == "/in/a.csv" and "run w-1, commit cccccccccccc, 2026-01-02" in left_out.why


def test_the_same_content_twice_in_one_run_is_loaded_once() -> None:
    selected = select_files([A, B, COPY], {}, "skip")
    assert [file.left_out for file in selected] == [None, None, "same content"]
    assert selected[2].by == A.path and "same content as another file" in describe_selection(selected, {})
    assert [file.left_out for file in select_files([A, COPY], {}, "reload")] == [None, "same content"]


def test_nothing_new_is_refused_and_names_the_run_that_loaded_it() -> None:
    with pytest.raises(AlreadyPublished, match=r"already published: loaded into t\.x by run w-1.*--again"):
        select_files([A], LOADED, "skip")
    with pytest.raises(AlreadyPublished, match="all 2 files were already published"):
        select_files([A, COPY], LOADED, "skip")


def test_a_pipeline_may_refuse_a_partly_loaded_input() -> None:
    with pytest.raises(InvalidInput, match="1 of 2 files was already published"):
        select_files([A, B], LOADED, "refuse")
    with pytest.raises(AlreadyPublished):  # a repeated start has nothing to do
        select_files([A], LOADED, "refuse")
    assert all(file.left_out is None for file in select_files([A, B], {}, "refuse"))


def test_a_program_of_the_users_reads_what_it_wants() -> None:
    assert all(file.left_out is None for file in select_files([A, COPY], {}, "reload", reads_selection=False))
    with pytest.raises(InvalidInput):  # once "skipped" as a partition of a backfill; one file was never loaded
        select_files([A, B], LOADED, "refuse", reads_selection=False)
    with pytest.raises(ValidationError, match="`loaded: skip` is only for the job 'ingest'"):
        Write.model_validate({"job": "mine.py", "source": {"path": "a.csv", "loaded": "skip"}})


@pytest.mark.parametrize(
    ("write", "policy"),
    [
        ({"source": {"path": "a.csv"}}, "skip"),
        ({"source": {"path": "a.csv"}, "mode": "merge", "keys": ["id"]}, "skip"),
        ({"source": {"path": "a.csv"}, "mode": "overwrite"}, "reload"),
        ({"source": {"path": "a.csv"}, "mode": "overwrite_partitions"}, "reload"),
        ({"source": {"path": "a.csv", "loaded": "refuse"}}, "refuse"),
        ({"source": {"path": "a.csv", "loaded": "skip"}, "mode": "overwrite"}, "skip"),
        ({"source": {"path": "a.csv"}, "job": "mine.py"}, "reload"),
    ],
)
def test_the_policy_by_mode(write: dict[str, object], policy: str) -> None:
    assert Write.model_validate(write).loaded_files == policy


def test_again_and_reload_do_not_ask() -> None:
    assert asks_what_was_loaded("skip", again=False) and asks_what_was_loaded("refuse", again=False)
    assert not asks_what_was_loaded("reload", again=False) and not asks_what_was_loaded("skip", again=True)


def header(**changed: object) -> ManifestHeader:
    stated = {"run_id": "r", "workflow_id": "w", "pipeline": "p", "attempt": 1, "base": "b", "tables": ["t.x"]}
    return ManifestHeader.model_validate({**stated, "policy": "skip", "again": False, "input_digest": "d", **changed})


def test_a_manifest_is_read_as_it_was_written_or_not_at_all() -> None:
    odd = ManifestFile(path="/in/ü\n\u2028.csv", size=1, identity="x")
    manifest = InputManifest(header=header(), files=[odd, *select_files([A, B, COPY], {}, "skip")])
    content = manifest.to_bytes()
    assert len(content.splitlines()) == 5
    assert read_manifest(content, "here", manifest_digest(content)) == manifest
    assert [file.path for file in manifest.loaded] == [odd.path, A.path, B.path]
    with pytest.raises(ManifestUnreadable, match="here is not the one that was written"):
        read_manifest(content.replace(b"/in/b", b"/in/c"), "here", manifest_digest(content))


def test_a_manifest_stays_readable_between_releases() -> None:
    """An earlier release refuses keys that it does not know: a new one is written only if it has a value."""
    content = InputManifest(header=header(), files=[]).to_bytes()
    assert b"partitions" not in content and content.startswith(b'{"version":1,')
    later = content.replace(b'"run_id"', b'"new_key":1,"run_id"')
    with pytest.raises(ManifestUnreadable, match="here is of a later release of Sluice: upgrade this worker"):
        read_manifest(later, "here", manifest_digest(later))


def test_a_commit_says_what_its_run_loaded() -> None:
    properties = {RUN_ID: "r", PIPELINE: "p", **input_properties("d", ["t.x", "t.y"], REF)}
    record = read_input_record(properties)
    assert record and (record.digest, record.tables, record.manifest) == ("d", ("t.x", "t.y"), REF)
    assert read_input_record({**properties, ROLLED_BACK: "r3,r2"}).rolled_back == ("r3", "r2")  # type: ignore[union-attr]
    assert kept_input_properties({**properties, "other": "x"}) == input_properties("d", ["t.x", "t.y"], REF)
    assert read_input_record({PIPELINE: "p"}) is None


def test_the_roll_back_of_a_roll_back_brings_the_run_back() -> None:
    assert list(effects_of_rollback(["r2", "r1"], {})) == [("r2", False), ("r1", False)]
    assert list(effects_of_rollback(["b1"], {"b1": ["r2", "r1"]})) == [("b1", False), ("r2", True), ("r1", True)]
    again = dict(effects_of_rollback(["b1", "r1"], {"b1": ["r1"]}))
    assert again["r1"] is False  # the table is as it was before r1


def request(**changed: object) -> RunRequest:
    write = {"source": {"path": "a.csv", "loaded": changed.pop("loaded", None)}}
    pipeline = Pipeline.model_validate({"name": "p", "write": write, "tables": {"t.x": {}}})
    return RunRequest.model_validate({"pipeline": pipeline, "input": RunInput(digest="d"), "starter": "ana", **changed})


def test_what_a_run_asks_before_its_merge() -> None:
    assert check_of_run(request(), REF) == PublicationCheck(tables=["t.x"], manifest=REF)
    whole = PublicationCheck(tables=["t.x"], pipeline="p", digest="d")
    assert check_of_run(request(), None) == whole
    assert check_of_run(request(loaded="reload"), REF) == whole.model_copy(update={"manifest": REF})
    assert check_of_run(request(again=True), REF) is None
    resume = Resume(branch="q", run_id="r", base="b", head="h", published=whole)
    assert check_of_run(request(resume=resume, again=True), REF) == whole
    assert check_of_run(request(restore=Restore(runs=["r"], main_head="h", tables={}), again=True), None) is None


def test_what_a_release_asks() -> None:
    properties = {RUN_ID: "r", PIPELINE: "p", **input_properties("d", ["t.x"], REF)}
    assert check_of_quarantine(properties, header()) == PublicationCheck(tables=["t.x"], manifest=REF)
    again = check_of_quarantine(properties, header(again=True))
    assert again == PublicationCheck(tables=["t.x"], manifest=REF)
    reload = check_of_quarantine(properties, header(policy="reload"))
    assert reload == PublicationCheck(tables=["t.x"], manifest=REF, pipeline="p", digest="d")
    month = LoadScope(content="2018-01")
    described = {RUN_ID: "r", PIPELINE: "p", **input_properties("d", ["t.x"], scope=month)}
    assert check_of_quarantine(described, None) == PublicationCheck(
        tables=["t.x"], pipeline="p", digest="d", scope=month
    )
    assert check_of_quarantine({RUN_ID: "r"}, None) is None


def test_an_overlap_names_files_and_run() -> None:
    described = describe_overlap([HeldFile(WantedFile(A.path, A.identity), LOAD)])
    assert "/old/a.csv" in described and "run w-1" in described
    whole = LoadedFile("", "", "r1", "w-1", "c" * 64, "")
    assert "published by run w-1" in describe_overlap([HeldFile(WantedFile("", "d"), whole)])


def test_what_goes_through_temporal_is_small_however_many_files_there_are() -> None:
    files = [
        InputFile(path=f"/in/{'d' * 3000}/{number}.csv", size=1, identity=f"id-{number}") for number in range(9999)
    ]
    loaded = {file.path: LoadedFile("t.x", file.path, f"r{i}", f"w-{i}", "c", "") for i, file in enumerate(files)}
    held = [HeldFile(WantedFile(path, ""), load) for path, load in loaded.items()]
    selected = select_files([*files, A, COPY], loaded, "skip")
    names = name_left_out(selected, loaded)
    assert len(names) == 5 and sum(len(each.path) + len(each.why) for each in names) < 3000
    assert len(describe_selection(selected, loaded)) < 4000 and "9999 left out" in describe_selection(selected, loaded)
    assert len(describe_overlap(held)) < 4000
    with pytest.raises(AlreadyPublished) as refused:
        select_files(files, loaded, "skip")
    assert len(str(refused.value)) < 4000
