"""Refusals: landing zones that list files of Sluice or of another zone, and runs that read files of a zone."""

from pathlib import Path
from typing import Any

import pytest

from devstack.stack import ROOT
from lakehouse.source_files import may_share
from runtime.arrivals.zone_conflicts import check_deploy, check_location, hint_at_zones, with_absolute_source
from sluice.deployment.files import PipelineFile, read_files
from sluice.deployment.plan import DeployedItem
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings


def pipeline(name: str, from_: str = "", table: str = "t.x", **more: Any) -> Pipeline:
    arrival = {"arrival": {"from": from_, **more}} if from_ else {}
    fields = {"name": name, "write": {"source": {"format": "csv", **({} if from_ else more)}}, "tables": [table]}
    return Pipeline.model_validate(fields | arrival)


def zone(stated: Pipeline) -> DeployedItem:
    assert stated.arrival
    properties = stated.arrival.properties() | {"tables": ", ".join(stated.tables), "paths are relative to": "/srv"}
    return DeployedItem("landing zone", stated.name, f"{stated.name}.yml", "set", "/srv", properties)


def problems(*wanted: Pipeline, present: tuple[Pipeline, ...] = (), files: tuple[PipelineFile, ...] = ()) -> str:
    try:
        scheduled = [with_absolute_source(file.pipeline, Path("/srv")) for file in files]
        check_deploy([*map(zone, wanted)], [*map(zone, present)], scheduled)
    except InvalidPipeline as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("first", "second", "shares"),
    [
        ("/in", "/in", True),
        ("/in", "/in/orders", True),
        ("/in/orders", "/in/rides", False),
        ("/in", "/input", False),
        ("/in/*.csv", "/in/*.json", False),
        ("/in/*.csv", "/in/a*.csv", True),
        ("/in/a*", "/in/b*", False),
        ("/in/*.csv", "/in/orders/a.csv", False),
        ("/in/*/a.csv", "/in/orders", True),
        ("/in/**/a.csv", "/in/x/y/a.csv", True),
        ("/in/**", "/out/**", False),
        ("file:/in", "/in/x", True),
        ("s3://b/in/", "s3a://b/in/orders/", True),
        ("s3://b/in/", "s3://c/in/", False),
        ("s3://b", "s3://b/lake", True),
        ("s3://b/in/", "/b/in", False),
    ],
)
def test_whether_two_paths_may_list_a_file_in_common(first: str, second: str, shares: bool) -> None:
    assert may_share(first, second) is may_share(second, first) is shares


@pytest.mark.parametrize(
    "from_",
    ["{home}", "{home}/in", "{folder}", "{home}/lake/t", "{folder}/way/in", "{root}", "{root}/sluice/in", "{root}/.."],
)
def test_a_zone_around_or_inside_of_what_is_ours_is_refused(tmp_path: Path, from_: str) -> None:
    home = tmp_path / "home"
    (home / "in").mkdir(parents=True)
    (tmp_path / "way").symlink_to(home)
    settings = Settings.of(sluice_home=home)
    stated = pipeline("orders", from_.format(home=home, folder=tmp_path, root=ROOT))
    with pytest.raises(InvalidPipeline, match=r"has files in common with (the lake|SLUICE_HOME|a checkout of Sluice)"):
        check_location(stated, settings.storage, tmp_path)


@pytest.mark.parametrize("from_", ["s3://lake", "s3a://lake/warehouse/t/", "s3://lake/*"])
def test_a_prefix_around_or_inside_of_the_lake_is_refused(tmp_path: Path, from_: str) -> None:
    with pytest.raises(InvalidPipeline, match="has files in common with the lake, s3://lake/warehouse"):
        check_location(pipeline("orders", from_), Settings.of(lake_bucket="lake").storage, tmp_path)


@pytest.mark.parametrize("from_", ["landing", "data/landing", f"{ROOT}/data/landing/demo-orders", "s3://lake/in/", "~"])
def test_a_folder_beside_what_is_ours_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    settings = Settings.of(sluice_home=tmp_path / "home", lake_bucket="lake")
    check_location(pipeline("orders", from_), settings.storage, tmp_path)


def test_any_checkout_around_a_zone_counts(tmp_path: Path) -> None:
    for name in ("run_workflow.py", "worker.py"):
        (tmp_path / name).touch()
    with pytest.raises(InvalidPipeline, match=r"a checkout of Sluice, .*pipelines"):
        check_location(
            pipeline("orders", str(tmp_path / "pipelines")), Settings.of(sluice_home=Path("/h")).storage, Path("/")
        )


def test_two_zones_share_files_only_where_both_keep_them_and_no_table_is_common() -> None:
    orders, nested = pipeline("orders", "in"), pipeline("nested", "/srv/in/today")
    assert "may list the same files" in problems(orders, nested)
    assert "may list the same files" in problems(nested, present=(orders,))
    assert problems(orders, pipeline("other", "in", table="t.y")) == ""
    moving = pipeline("other", "in", table="t.y", after="move", move_to="done")
    assert "may list the same files" in problems(orders, moving)
    assert problems(orders, pipeline("other", "out", after="move", move_to="done")) == ""
    into = pipeline("other", "out", after="move", move_to="in/done")
    assert "would list the files that 'other' moves to" in problems(orders, into)
    assert "would list the files that 'other' moves to" in problems(into, present=(orders,))


@pytest.mark.parametrize(("path", "table", "refused"), [("in/*.csv", "t.x", 1), ("in", "t.y", 0), ("out", "t.x", 0)])
def test_a_schedule_that_loads_files_of_a_zone_into_its_table_is_refused(path: str, table: str, refused: int) -> None:
    text = f"name: nightly\nwrite: {{source: {{path: '{path}', format: csv}}}}\ntables: [{table}]\n"
    scheduled = read_files({"nightly.yml": f"{text}schedule: {{cron: 0 5 * * *}}\n"})
    orders = pipeline("orders", "in")
    for refusal in (problems(orders, files=(*scheduled,)), problems(present=(orders,), files=(*scheduled,))):
        assert ("`arrivals orders --load FILE`" in refusal) == bool(refused), refusal


def test_check_hints_at_a_zone_of_another_file_in_the_folder(tmp_path: Path) -> None:
    text = "name: {}\nwrite: {{source: {{{}format: csv}}}}\ntables: [t.x]\n"
    (tmp_path / "orders.yml").write_text(text.format("orders", "") + "arrival: {from: in}\n")
    (tmp_path / "broken.yml").write_text("name: [")
    (tmp_path / "months.yaml").write_text(text.format("months", "path: '{{ partition }}.csv', "))
    reader = tmp_path / "reader.yml"
    source = {"source": {"path": str(tmp_path / "in" / "*.csv"), "format": "csv"}}
    stated = Pipeline.model_validate({"name": "reader", "write": source, "tables": ["t.x"]})
    (hint,) = hint_at_zones(stated, reader, tmp_path)
    assert "'reader' reads" in hint and "`arrivals orders --load FILE`" in hint
    (hint,) = hint_at_zones(pipeline("nested", str(tmp_path / "in" / "today")), reader, tmp_path)
    assert "may list the same files" in hint
    assert hint_at_zones(pipeline("orders", "in"), tmp_path / "orders.yml", tmp_path) == []


def test_a_schedule_beside_an_arrival_is_refused() -> None:
    with pytest.raises(ValueError, match="schedule: files that arrive start the runs"):
        Pipeline.model_validate({**pipeline("orders", "in").model_dump(), "schedule": {"cron": "0 5 * * *"}})
