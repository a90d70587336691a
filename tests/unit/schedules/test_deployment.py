"""Deploying pipeline files: the files that are read, the plan, and deployments of others, which stay unchanged."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.arrivals.deployed_zones import describe_forgotten
from runtime.installation.identity import with_known_installation
from runtime.schedules.deploy import make_set, read_folder
from sluice.contracts.arrivals import Batch, BatchRef, BatchState
from sluice.contracts.schedules import MissedStarts, ScheduleNotice
from sluice.contracts.starting import EndedRun
from sluice.deployment.files import read_files
from sluice.deployment.plan import Change, DeployedItem, DeploySet, plan_changes
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.notifications.message import message_of_schedule
from sluice.notifications.slack import slack_text
from sluice.presentation.schedules import describe_missed
from sluice.settings import Settings

SET = DeploySet("nightly", "/srv/nightly", stated=False)


def file(name: str, more: str = "", path: str = "in.csv") -> str:
    return f'name: {name}\nwrite: {{source: {{path: "{path}"}}}}\ntables: {{t.x: {{}}}}\n{more}'


def item(pipeline: str = "a", **more: str) -> DeployedItem:
    properties = {"cron": "0 5 * * *", "zone": "UTC"} | more
    return DeployedItem("schedule", pipeline, f"{pipeline}.yml", SET.name, SET.folder, properties)


def actions(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.action, change.item.pipeline) for change in changes]


def test_all_files_of_a_folder_are_read_but_hidden_ones(tmp_path: Path) -> None:
    for name in ("a.yml", "sub/b.yaml", ".hidden/c.yml", ".d.yml", "readme.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(file(path.stem.strip(".")) if path.suffix != ".md" else "text")
    assert [(each.name, each.pipeline.name) for each in read_folder(tmp_path)] == [("a.yml", "a"), ("sub/b.yaml", "b")]
    with pytest.raises(InvalidPipeline, match="is not a folder"):
        read_folder(tmp_path / "a.yml")


def test_a_file_that_cannot_be_seen_is_not_taken_for_one_that_was_deleted(tmp_path: Path) -> None:
    """Otherwise, its deployment would be removed."""
    (tmp_path / "far").mkdir()
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (tmp_path / "far" / "a.yml").write_text(file("a"))
    (folder / "linked").symlink_to(tmp_path / "far")
    (folder / "loop").symlink_to(folder)
    assert [each.name for each in read_folder(folder)] == ["linked/a.yml"]
    (folder / "b.yml").symlink_to(tmp_path / "missing.yml")
    (folder / "c.yml").mkdir()
    os.mkfifo(folder / "d.yml")
    with pytest.raises(InvalidPipeline, match=r"b\.yml cannot be read: No such file(.|\n)*d\.yml is not a file"):
        read_folder(folder)


def test_every_error_of_every_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(file("a", "schedule: {cron: 0 25 * * *}\n"))
    (tmp_path / "b.yml").write_text(file("b", "shedule: {cron: 0 5 * * *}\n"))
    (tmp_path / "c.yml").write_bytes(b"\xff")
    (tmp_path / "d.yml").write_text(file("e"))
    (tmp_path / "e.yml").write_text(file("e"))
    with pytest.raises(InvalidPipeline) as refused:
        read_folder(tmp_path)
    text = str(refused.value)
    assert f"{tmp_path}/a.yml:4: schedule.cron: the hour '25'" in text
    assert "b.yml:4: unknown key 'shedule' (did you mean 'schedule'?)" in text
    assert "c.yml cannot be read" in text
    assert f"{tmp_path}/e.yml: the pipeline 'e' is in {tmp_path}/d.yml, too" in text


def test_files_with_placeholders_are_valid_without_a_run() -> None:
    daily = "schedule: {cron: 0 5 * * *, zone: Europe/Berlin}\n"
    texts = {
        "scheduled.yml": file("scheduled", daily, "in/{{ scheduled_for.date }}.csv"),
        "backfilled.yml": file("backfilled", path="in/{{ partition.year }}/{{ partition.day }}.csv"),
    }
    assert [each.pipeline.name for each in read_files(texts)] == ["scheduled", "backfilled"]
    with pytest.raises(InvalidPipeline, match=r"x\.yml:2: \{\{ partition \}\} has no value in this run: `backfill`"):
        read_files({"x.yml": file("x", daily, "in/{{ partition }}.csv")})
    with pytest.raises(InvalidPipeline, match="there is no placeholder"):
        read_files({"x.yml": file("x", path="in/{{ day }}.csv")})


def test_a_plan_creates_changes_removes_and_leaves_alone() -> None:
    present = [item("a"), item("b"), item("c"), replace(item("d"), set_name="of-others", folder="/srv/of-others")]
    wanted = [item("a"), item("b", cron="0 6 * * *"), item("new")]
    changes = plan_changes(wanted, present, SET)
    assert actions(changes) == [("unchanged", "a"), ("change", "b"), ("remove", "c"), ("create", "new")]
    assert changes[1].differences == ["cron: 0 5 * * * → 0 6 * * *"]
    assert [change.is_work for change in changes] == [False, True, True, True]
    assert actions(plan_changes(wanted, wanted, SET)) == [("unchanged", name) for name in ("a", "b", "new")]


def test_a_paused_schedule_is_named_as_one_that_stays_so() -> None:
    paused = replace(item("a"), paused="we migrate")
    [changed] = plan_changes([item("a", zone="CET")], [paused], SET)
    [unchanged] = plan_changes([item("a")], [paused], SET)
    assert (changed.action, changed.paused) == ("change", "we migrate")
    assert (unchanged.action, unchanged.paused) == ("unchanged", "we migrate")


def test_a_property_that_was_added_to_a_thing_is_a_difference() -> None:
    [change] = plan_changes([item("a")], [item("a", changed="times")], SET)
    assert change.differences == ["changed: times → none"]


def test_what_another_set_deployed_is_neither_changed_nor_removed() -> None:
    theirs = replace(item("a"), set_name="of-others", folder="/srv/of-others")
    assert plan_changes([], [theirs], SET) == []
    with pytest.raises(InvalidPipeline, match="belongs to the set 'of-others', deployed from /srv/of-others"):
        plan_changes([item("a")], [theirs], SET)


def test_another_folder_of_the_same_name_is_another_set_until_somebody_names_it() -> None:
    theirs = replace(item("b"), folder="/home/ana/nightly")
    with pytest.raises(InvalidPipeline, match="was deployed from /home/ana/nightly, another folder of the name"):
        plan_changes([item("a")], [theirs], SET)
    stated = replace(SET, stated=True)
    assert actions(plan_changes([item("a")], [theirs], stated)) == [("create", "a"), ("remove", "b")]


def test_a_set_is_called_after_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert make_set(Path(), "") == DeploySet(tmp_path.name, str(tmp_path.resolve()))
    assert make_set(tmp_path, "mine") == DeploySet("mine", str(tmp_path.resolve()), stated=True)


def test_no_command_makes_an_installation(tmp_path: Path) -> None:
    settings = Settings.of(sluice_home=tmp_path)
    with pytest.raises(BadEnvironment, match="the id of this installation is not known"):
        with_known_installation(settings)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "installation").write_text("abc\n")
    assert with_known_installation(settings).installation.sluice_installation == "abc"
    stated = Settings.of(sluice_installation="here", sluice_home=tmp_path / "none")
    assert with_known_installation(stated) == stated


def test_notices_are_plain_text_and_say_what_to_do() -> None:
    ended = EndedRun(workflow_id="p-1", run_id="r", outcome="quarantined", reason="<!channel>\nnot_null failed")
    line = slack_text(message_of_schedule(ScheduleNotice(pipeline="p", ended=ended, paused=True)))
    assert line == (
        ":warning: schedule of p: run p-1 ended quarantined: &lt;!channel&gt; not_null failed; it is paused until "
        "`resume p`"
    )
    assert describe_missed(MissedStarts(late=2, overlapping=1)) == (
        "2 because Temporal was unavailable for longer than `catch_up`, 1 because the previous run had not ended"
    )
    assert describe_missed(MissedStarts()) == ""
    assert MissedStarts(late=3).since(MissedStarts(late=1, overlapping=4)) == MissedStarts(late=2)


def test_the_removal_of_a_zone_names_the_files_that_only_the_zone_remembers() -> None:
    def batch(state: BatchState, files: int) -> Batch:
        return Batch(ref=BatchRef(id="b", location="l", files=files, bytes=1), state=state)

    assert describe_forgotten([batch("waiting", 7), batch("running", 2)]) == ""
    text = describe_forgotten([batch("kept out", 2), batch("set aside", 1), batch("kept out", 1)])
    expected = "the 3 files kept out and the 1 file set aside"
    assert text == f"a zone that is deployed again loads {expected} in this one"
