"""The scope of a load: the partition and time that are part of a run's identity, and main's loads of a file by them."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.pipeline.pipeline_input import find_input, load_pipeline, pipeline_of_text
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidInput
from sluice.input.held_files import HeldFile, LoadedFile, LoadsOfTable, WantedFile
from sluice.input.repeated_loads import hints_on_repeated_loads
from sluice.input.selection import describe_overlap, refuse_partly_loaded
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.placeholders import partition_values, time_values, values_of_all
from sluice.pipeline.scope import NO_SCOPE, LoadScope, load_scope, overlapping

TIME = datetime(2026, 3, 2, 5, 30, tzinfo=timezone.utc)
LAST_OF_JANUARY = partition_values("2018-01-31") | time_values(datetime(2018, 1, 31, tzinfo=timezone.utc))
VALUES = partition_values("2018-03-09") | time_values(TIME)


def of_partition(write: dict[str, Any], **more: Any) -> tuple[str, str]:
    scope = load_scope({"write": write, **more}, VALUES)
    return scope.path, scope.content


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("{{ partition }}", "2018-03-09"),
        ("{{ partition.year }}", "2018"),
        ("{{ partition.year }}/{{ partition.month }}", "2018-03"),
        ("{{ partition.month }}", "2018-03"),
        ("{{ partition.day }}", "2018-03-09"),
        ("{{ partition.start }} {{ partition.year }}", "2018-03-09"),
        ("{{ partition.end }}", "2018-03-09"),
        ("{{ scheduled_for }}", "2026-03-02T05:30:00+00:00"),
        ("{{ scheduled_for.date }}", "2026-03-02"),
        ("{{ scheduled_for.month }}", "2026-03"),
        ("{{ scheduled_for.hour }}", "2026-03-02T05"),
        ("{{ scheduled_for.date }} {{ scheduled_for.minute }}", "2026-03-02T05:30"),
        ("{{ partition.year }} {{ scheduled_for.year }}", "2018, 2026"),
        ("plain", ""),
    ],
)
def test_a_scope_is_as_exact_as_the_finest_part_that_is_used(text: str, label: str) -> None:
    assert of_partition({"transform": text}) == ("", label)
    assert of_partition({"source": {"path": text}}) == (label, "")


@pytest.mark.parametrize(
    "write",
    [
        {"transform": "{{ partition }}"},
        {"args": ["--day", "{{ partition }}"]},
        {"environment": {"DAY": "{{ partition }}"}},
        {"conf": {"spark.day": "{{ partition }}"}},
        {"statements": ["DELETE FROM t WHERE day = '{{ partition }}'"]},
        {"source": {"path": "a.csv", "options": {"comment": "{{ partition }}"}}},
        {"source": {"path": "a.csv", "schema": "{{ partition }}"}},
    ],
)
def test_every_key_of_the_write_counts(write: dict[str, Any]) -> None:
    assert of_partition(write) == ("", "2018-03-09")


def test_what_writes_nothing_does_not_count() -> None:
    read_by_people = {"description": "{{ partition }}", "publish": {"message": "{{ partition }}"}}
    table = {"checks": [{"accepted_values": {"values": ["{{ partition }}"]}}]}
    assert of_partition({}, **read_by_people, tables={"t.x": table}) == ("", "")
    assert of_partition({}, tables={"t.x": {**table, "where": "{{ partition }}"}}) == ("", "2018-03-09")
    assert of_partition({}, tables=["t.x", "t.{{ partition.year }}"]) == ("", "2018")
    assert of_partition({}, tables={"t.x": None}) == ("", "")


def test_a_placeholder_that_stands_elsewhere_too_is_no_part_of_the_path_alone() -> None:
    write = {"source": {"path": "{{ partition.year }}/*.csv"}, "transform": "{{ partition }} {{ partition.year }}"}
    assert of_partition(write) == ("", "2018-03-09")


def test_a_pipeline_file_has_its_scope_through_every_copy(tmp_path: Path) -> None:
    (tmp_path / "2018.csv").write_text("id\n1\n")
    file = tmp_path / "p.yml"
    text = "name: p\nwrite:\n  source: {path: '{{ partition.year }}.csv'}\n  transform: SELECT '{{ partition }}' AS p\n"
    file.write_text(f"{text}tables: [t.x]\n")
    values = partition_values("2018-03")
    expected = LoadScope(path="2018", content="2018-03")
    loaded = load_pipeline(file, {}, tmp_path, values)
    stated = PipelineText(name="p.yml", text=file.read_text(), folder=str(tmp_path))
    for pipeline in (loaded, pipeline_of_text(stated, values), loaded.model_copy(update={"keep": 5.0})):
        assert pipeline.scope == expected and find_input(pipeline).scope == expected
    assert parse_pipeline(file.read_text(), "p.yml", values_of_all(["2018-01", "2018-02"])).scope.content


MONTHS = ("2018-01", "2018-02")


def digests(tmp_path: Path, write: str) -> set[str]:
    (tmp_path / "job.py").write_text("pass\n")
    (tmp_path / "a.csv").write_text("id\n1\n")
    stated = PipelineText(name="p.yml", text=f"name: p\nwrite: {write}\ntables: [t.x]\n", folder=str(tmp_path))
    return {find_input(pipeline_of_text(stated, partition_values(month))).digest for month in MONTHS}


@pytest.mark.parametrize(
    "write",
    [
        "{source: {path: a.csv}, transform: \"SELECT * FROM source WHERE id = '{{ partition }}'\"}",
        '{job: job.py, environment: {DAY: "{{ partition }}"}}',
        '{job: job.py, conf: {spark.day: "{{ partition }}"}}',
        '{job: job.py, args: ["{{ partition }}"]}',
        '{job: job.py, source: {path: a.csv}, args: ["{{ partition }}"]}',
        "{mode: sql, statements: [\"DELETE FROM t.x WHERE at = '{{ partition }}'\"]}",
        '{source: {path: "{{ partition }}.csv"}}',
    ],
)
def test_each_partition_is_a_run_of_its_own(tmp_path: Path, write: str) -> None:
    """An earlier version identified a run by files, or by program and arguments, and `skipped` the second month."""
    for month in MONTHS:
        (tmp_path / f"{month}.csv").write_text("id\n1\n")
    assert len(digests(tmp_path, write)) == 2


def test_a_check_alone_makes_no_other_run(tmp_path: Path) -> None:
    assert len(digests(tmp_path, '{source: {path: a.csv}}\ndescription: "{{ partition }}"')) == 1


def test_another_environment_of_a_program_is_another_run(tmp_path: Path) -> None:
    written = ("{job: job.py}", "{job: job.py, environment: {A: b}}", "{job: job.py, args: [A, b]}")
    assert len(set().union(*(digests(tmp_path, write) for write in written))) == 3


def load(
    path: str = "a.csv", identity: str = "1", path_scope: str = "", content: str = "", run: str = "r"
) -> LoadedFile:
    scope = LoadScope(path=path_scope, content=content)
    return LoadedFile("t.x", path, run, f"w-{run}", "c" * 64, "2026-01-02T03:04:05+00:00", identity, scope)


def find(wanted: WantedFile, *loads: LoadedFile, order_matters: bool = False) -> HeldFile | None:
    return LoadsOfTable(loads, order_matters=order_matters).find(wanted)


@pytest.mark.parametrize(
    ("loaded", "wanted", "state"),
    [
        (("", ""), ("", ""), "held"),
        (("", "m1"), ("", "m1"), "held"),
        (("", "m1"), ("", "m2"), "free"),
        (("m1", ""), ("m1", ""), "held"),
        (("m1", ""), ("m2", ""), "free"),
        (("", ""), ("m1", ""), "held"),
        (("m1", ""), ("", ""), "held"),
        (("", "m1"), ("y1", "m1"), "held"),
        (("y1", "m1"), ("y2", "m1"), "free"),
        (("", ""), ("", "m1"), "partly"),
        (("", "m1"), ("", ""), "partly"),
        (("m1", ""), ("m1", "m1"), "partly"),
    ],
)
def test_main_holds_a_partition_of_a_file(loaded: tuple[str, str], wanted: tuple[str, str], state: str) -> None:
    scope = LoadScope(path=wanted[0], content=wanted[1])
    held = find(WantedFile("other/a.csv", "1", scope), load(path_scope=loaded[0], content=loaded[1]))
    assert ("free" if held is None else "partly" if held.is_partly else "held") == state


@pytest.mark.parametrize("field", ["path", "content"])
def test_a_moment_in_two_time_zones_is_one_scheduled_time(field: str) -> None:
    """In an earlier version, a start by hand in UTC appended what the schedule in Berlin had loaded."""
    berlin, utc, other = (
        LoadScope.model_validate({field: f"2018, {time}"})
        for time in ("2026-03-02T05:30:00+01:00", "2026-03-02T04:30:00+00:00", "2026-03-02T05:30:00+00:00")
    )
    wanted = WantedFile("copy.csv", "1", utc)
    assert find(wanted, load(path_scope=berlin.path, content=berlin.content))
    assert find(wanted, load(path_scope=other.path, content=other.content)) is None
    assert berlin.shares_rows(utc) and berlin.shares_rows(other) == (field == "path")


def test_a_file_at_its_own_path_is_of_no_other_partition() -> None:
    """A schedule and a backfill may name the same folder in two ways."""
    day, month = LoadScope(path="2018-01-31"), LoadScope(path="2018-01")
    assert find(WantedFile("a.csv", "1", day), load(path_scope="2018-01")), "it was found at this path before"
    assert find(WantedFile("copy.csv", "1", day), load(path_scope="2018-01")) is None
    assert day == load_scope({"write": {"source": {"path": "{{ scheduled_for.date }}"}}}, LAST_OF_JANUARY)
    assert day == load_scope({"write": {"source": {"path": "{{ partition }}"}}}, LAST_OF_JANUARY)
    assert month == load_scope({"write": {"source": {"path": "{{ scheduled_for.month }}"}}}, LAST_OF_JANUARY)


def test_what_main_holds_otherwise_is_refused_in_one_sentence() -> None:
    month = WantedFile("a.csv", "1", LoadScope(content="2018-01"))
    held = find(month, load())
    assert held
    with pytest.raises(InvalidInput, match=r"w-r loaded a\.csv whole into t\.x, .*now be loaded for 2018-01.*--again"):
        refuse_partly_loaded([held])
    whole = find(WantedFile("a.csv", "1"), load(content="2018-01"))
    assert whole and "loaded a.csv for 2018-01 into t.x" in describe_overlap([whole])
    refuse_partly_loaded([each for each in [find(month, load(content="2018-01"))] if each])


def test_where_the_order_matters_the_latest_content_of_a_path_counts() -> None:
    """A price file was sent as 10, 20, 10. An earlier version left out the third, and main kept 20."""
    ten, twenty = load(identity="10", run="r1"), load(identity="20", run="r2")
    wanted = WantedFile("a.csv", "10")
    assert find(wanted, ten, twenty) and find(wanted, ten, order_matters=True)
    assert find(wanted, ten, twenty, order_matters=True) is None
    assert find(WantedFile("a.csv", "20"), ten, twenty, order_matters=True)
    assert find(WantedFile("copy.csv", "10"), ten, twenty, order_matters=True), "nothing else came from this path"
    third = load(identity="10", run="r3")
    again = find(wanted, ten, twenty, third, order_matters=True)
    assert again and again.load.run_id == "r3"
    other_partition = load(identity="20", content="m2")
    assert find(wanted, ten, other_partition, order_matters=True)


scopes = st.builds(LoadScope, path=st.sampled_from(["", "m1", "m2"]), content=st.sampled_from(["", "m1", "m2"]))
loads = st.builds(
    lambda path, identity, scope: load(path, identity, scope.path, scope.content),
    st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), scopes,
)  # fmt: skip


@given(st.lists(loads, max_size=6), scopes, st.booleans())
def test_what_was_just_loaded_is_held_and_nothing_is_held_that_was_never_loaded(
    earlier: list[LoadedFile], scope: LoadScope, order_matters: bool
) -> None:
    wanted = WantedFile("a", "1", scope)
    held = find(wanted, *earlier, order_matters=order_matters)
    if held:
        assert held.load.identity == "1"
        assert held.is_partly == (bool(held.load.scope.content) != bool(scope.content))
    mine = load("a", "1", scope.path, scope.content, run="mine")
    after = find(wanted, *earlier, mine, order_matters=order_matters)
    assert after and not after.is_partly


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("2018", "2018-01", True),
        ("2018-01-15", "2018", True),
        ("2018-01", "2018-01-15", True),
        ("2018-01", "2018-01", False),
        ("2018-01", "2018-02", False),
        ("2018", "2018-emea", False),
        ("eu", "eu-west", False),
    ],
)
def test_a_date_overlaps_the_dates_that_it_contains(one: str, other: str, overlap: bool) -> None:
    loads = LoadScope(content=one), LoadScope(content=other)
    assert [loads[0].overlaps_partly(loads[1]), loads[1].overlaps_partly(loads[0])] == [overlap, overlap]
    pair = overlapping({one: loads[0], other: loads[1]})
    assert pair == ((min(one, other, key=len), max(one, other, key=len)) if overlap else None)


@given(scopes, scopes)
def test_holding_is_mutual_and_excludes_a_partial_overlap(one: LoadScope, other: LoadScope) -> None:
    for is_same_path in (True, False):
        assert one.covers(other, is_same_path=is_same_path) == other.covers(one, is_same_path=is_same_path)
        assert one.covers(one, is_same_path=is_same_path)
        assert not (one.covers(other, is_same_path=is_same_path) and one.overlaps_partly(other))
    assert (one.digest_text == other.digest_text) == (one == other)
    assert NO_SCOPE.digest_text == ""


@pytest.mark.parametrize(
    ("write", "is_hinted"),
    [
        ("{source: {path: a.csv}, transform: \"SELECT '{{ scheduled_for }}' AS at\"}", True),
        ('{source: {path: "{{ scheduled_for.date }}.csv"}}', False),
        ("{source: {path: a.csv}}", False),
        ("{source: {path: a.csv}, mode: overwrite, transform: \"SELECT '{{ scheduled_for }}' AS at\"}", False),
    ],
)
def test_a_schedule_that_loads_its_files_again_each_time_gets_a_hint(write: str, is_hinted: bool) -> None:
    text = f"name: p\nwrite: {write}\ntables: [t.x]\nschedule: {{cron: 0 5 * * *}}\n"
    hints = hints_on_repeated_loads(parse_pipeline(text, "p.yml", time_values(TIME)))
    assert [hint.startswith("each scheduled time loads all files") for hint in hints] == [True] * is_hinted


@pytest.mark.parametrize(
    ("overwritten", "mode", "hints"), [("load", "append", 1), ("alert", "append", 0), ("load", "merge", 0)]
)
def test_a_zone_that_appends_overwritten_files_hints_at_rows_that_are_there_twice(
    overwritten: str, mode: str, hints: int
) -> None:
    keys = "keys: [id], " if mode == "merge" else ""
    text = f"""
name: p
write: {{{keys}mode: {mode}, source: {{format: csv}}}}
tables: [t.x]
arrival: {{from: /in/, overwritten: {overwritten}}}
"""
    given = hints_on_repeated_loads(parse_pipeline(text, "p.yml", {}))
    assert len(given) == hints and all("use `mode: merge` with keys" in each for each in given)
