"""Every cell of the table of loading rules, applied to every way to start a run."""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from activities.run.prepare_run import PrepareRunActivity
from cli.app import app
from cli.backfills.start import StartBackfill
from lakehouse.arrivals.batch_store import BatchStore
from runtime.run import start_run
from runtime.run.starter import Starter
from sluice.arrivals.held_batches import HeldBatches
from sluice.contracts.arrivals import BatchRef
from sluice.contracts.existing_rows import Resume, ResumeBranchInput
from sluice.contracts.lake_queries import RequeueSelection
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.references import RunRef
from sluice.contracts.run_request import RunInput
from sluice.contracts.starting import EndedRun, PipelineText, PreparedRun, StartPipelineInput
from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from sluice.deployment.files import read_files
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.loading_order import is_later, latest_of, out_of_order
from sluice.pipeline.loading_rules import TRAITS, Kind, Rule, Way, rule_of, table
from sluice.pipeline.model import Pipeline
from sluice.pipeline.placeholders import partition_values
from sluice.publishing.older_rows import may_be_older
from sluice.publishing.release import may_append, not_added_to_main
from sluice.publishing.requeue import plan_requeue
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.lake_client import client_without_attributes

CELLS = list(table().items())


def cells(*ways: Way) -> pytest.MarkDecorator:
    listed = [(kind, rule) for (way, kind), rule in CELLS if way in ways]
    return pytest.mark.parametrize(("kind", "rule"), listed, ids=[kind for kind, _ in listed])


def text_of(kind: Kind, folder: Path, more: str = "", path: str = "{{ partition }}.csv") -> str:
    """Return the file of a pipeline of a kind, whose partitions are files."""
    (folder / "job.py").write_text("")
    source = f'source: {{path: "{folder}/{path}", format: csv}}'
    write = {
        "merge": f"mode: merge, keys: [id], {source}",
        "sql": "mode: sql, statements: [\"DELETE FROM t.x WHERE day = '{{ partition }}'\"]",
        "compact": 'mode: compact, options: {target-file-size-bytes: "{{ partition }}"}',
        "program": f'job: {folder}/job.py, args: ["{{{{ partition }}}}"]',
    }.get(kind, f"mode: {kind}, {source}")
    rows = ", on_bad_rows: quarantine, max_bad_rows: 1" if kind not in ("sql", "compact", "program") else ""
    return f"name: p\nwrite: {{{write}}}\ntables: {{t.x: {{partition_by: [day]{rows}}}}}\n{more}"


def pipeline_of(kind: Kind, folder: Path, more: str = "", path: str = "{{ partition }}.csv") -> Pipeline:
    return parse_pipeline(text_of(kind, folder, more, path), "p.yml", partition_values("2018"))


@cells("by hand")
def test_a_start_by_hand_is_always_valid(kind: Kind, rule: Rule, tmp_path: Path) -> None:
    assert not rule.refused and rule.order == "any"
    pipeline = pipeline_of(kind, tmp_path)
    assert rule_of("by hand", pipeline.write, pipeline.tables) == rule


@cells("schedule")
def test_two_starts_of_a_schedule_do_not_overtake(kind: Kind, rule: Rule, tmp_path: Path) -> None:
    schedule = "schedule: {{cron: 0 5 * * *, overlap: {}}}\n"
    for overlap in ("skip", "buffer_one", "buffer_all", "cancel_other"):
        assert pipeline_of(kind, tmp_path, schedule.format(overlap)).schedule
    if rule.order == "any":
        assert pipeline_of(kind, tmp_path, schedule.format("allow_all")).schedule
        return
    with pytest.raises(InvalidPipeline, match=r"overlap: allow_all: with .* a run may overtake .* buffer_all"):
        pipeline_of(kind, tmp_path, schedule.format("allow_all"))


@cells("arrival")
def test_batches_of_a_landing_zone_keep_their_order(kind: Kind, rule: Rule, tmp_path: Path) -> None:
    def zone(more: str = "") -> Pipeline:
        text = text_of(kind, tmp_path, f"arrival: {{from: in/{more}}}\n", "*.csv")
        text = text.replace("format: csv}", "format: csv, loaded: skip}").replace("{{ partition }}", "x")
        return read_files({"p.yml": text})[0].pipeline  # as `deploy` does; `check` and the worker parse the same text

    if rule.refused:
        with pytest.raises(
            InvalidPipeline, match=r"arrival: |reads tables, not a source|for the job 'ingest'|use the job 'ingest'"
        ):
            zone()
        return
    stated = zone().arrival
    assert stated and stated.on_failure == ("pause" if rule.order == "one at a time" else "continue")
    for more in (", at_once: 2", ", on_failure: continue"):
        if rule.order == "any":
            assert zone(more).arrival
            continue
        with pytest.raises(InvalidPipeline, match=r"arrival: .*with `mode: .* rows of a later load replace rows"):
            zone(more)


@pytest.mark.parametrize("publish", ["each", "together"])
@pytest.mark.parametrize("kind", [kind for way, kind in table() if way == "by hand"])
def test_partitions_of_a_backfill_keep_their_order(kind: Kind, publish: Any, tmp_path: Path) -> None:
    rule = table()["backfill each" if publish == "each" else "backfill together", kind]
    file = tmp_path / "p.yml"
    file.write_text(text_of(kind, tmp_path))

    def asked(partitions: str = "2018..2020", concurrency: int | None = None, **more: Any) -> StartBackfill:
        return StartBackfill(file, partitions, None, concurrency, 3, publish, again=False, **more)

    dry_run = ["backfill", str(file), "--partitions", "2018..2020", "--dry-run", "--publish", publish]
    if rule.refused:
        with pytest.raises(InvalidPipeline, match=re.escape(rule.refused)):
            asked().prepare()
        result = CliRunner().invoke(app, dry_run)
        assert result.exit_code == 2 and rule.refused in result.stderr
        return
    in_order = rule.order == "one at a time"
    given = asked().prepare().progress
    assert (given.window, given.in_order) == ((1, True) if in_order else (4, False))
    assert ("1 at a time, in this order" in CliRunner().invoke(app, dry_run).stdout) == in_order
    if not in_order:
        assert asked(concurrency=9).prepare().progress.window == 9
        assert asked("2019,2018").prepare()
        return
    with pytest.raises(InvalidPipeline, match=r"--concurrency 2: with .*: its partitions run one at a time"):
        asked(concurrency=2).prepare()
    with pytest.raises(InvalidPipeline, match=r"2018 is older than 2019, which is named before it: .*--over-younger"):
        asked("2019,2018").prepare()
    assert asked("2019,2018", over_younger=True).prepare().over_younger
    assert asked("emea,apac").prepare(), "names have the order in which they are stated"


@pytest.mark.parametrize(("cell", "rule"), CELLS, ids=[f"{way}-{kind}" for (way, kind), _ in CELLS])
def test_a_worker_refuses_a_start_that_came_another_way(cell: tuple[Way, Kind], rule: Rule, tmp_path: Path) -> None:
    """Somebody may start `StartPipeline` without the command that applies the table."""
    way, kind = cell
    (tmp_path / "2018.csv").write_text("id,day\n1,1\n")
    preparing = PrepareRunActivity(client_without_attributes(), Settings(), cast(BatchStore, None))

    def prepare(**more: Any) -> PreparedRun:
        text = PipelineText(name="p.yml", text=text_of(kind, tmp_path), folder=str(tmp_path))
        given = StartPipelineInput(pipeline=text, starter="x", way=way, values=partition_values("2018"), **more)
        prepared: PreparedRun = asyncio.run(run_activity(preparing.prepare_run, given))
        return prepared

    prepared = prepare(in_order=True)
    assert (rule.refused in prepared.problem and prepared.request is None) if rule.refused else prepared.request
    if way.startswith("backfill") and rule.order == "one at a time":
        assert "its partitions run one at a time" in prepare().problem
    if prepared.request:
        assert prepared.request.order.partition == "2018"


@cells("requeue")
def test_rows_are_requeued_where_they_have_a_place(kind: Kind, rule: Rule, tmp_path: Path) -> None:
    def plan() -> object:
        return plan_requeue(
            pipeline_of(kind, tmp_path),
            "t.x",
            RequeueSelection(),
            columns={"id": "int"},
            quarantined_columns={"id": "int", "quarantined_run": "string"},
            inexact=(),
            quarantine_location="v1.json",
            quarantine_snapshot=1,
            spark_catalog="lake",
        )

    if not rule.refused:
        assert plan()
        return
    with pytest.raises(InvalidPipeline, match=re.escape(rule.refused)):
        plan()


@cells("release", "repair")
def test_only_rows_that_depend_on_nothing_are_released_onto_a_newer_main(
    kind: Kind, rule: Rule, tmp_path: Path
) -> None:
    write = pipeline_of(kind, tmp_path).write
    ref = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
    resume = Resume(branch="b", run_id="r", base="0", head="1")
    given = ResumeBranchInput(run_ref=ref, resume=resume, write=write, tables=["t.x"])
    verified = VerifiedWrite(head="1", attempt=1, tables={"t.x": 1}, appends=write.rebases)
    assert not rule.refused and may_append(given, verified) == (rule.guard != "changed table")
    older_would_win = "if the older rows are to win" in not_added_to_main(resume, "x changed", write, ["t.x"])
    assert older_would_win == (kind not in ("append", "compact"))


@cells("retry")
def test_an_older_batch_is_not_retried_after_a_younger_one(kind: Kind, rule: Rule) -> None:
    if rule.refused:
        return  # such a pipeline has no landing zone
    zone, in_order = kept_out_zone(), rule.order == "one at a time"
    zone.end(EndedRun(key="c", outcome="published"))
    for request in (BatchCommand(action="retry", batch="a", by="ana"), SplitBatch(batch="a", by="ana")):
        problem = zone.problem_of_request(request, in_order=in_order)
        assert ("the younger batch c was loaded" in problem) == (rule.guard == "later batch")
        wins = request.model_copy(update={"over_younger": True})
        assert not zone.problem_of_request(wins, in_order=in_order)
    assert not zone.problem_of_request(BatchCommand(action="set aside", batch="a", by="ana"), in_order=in_order)


def kept_out_zone() -> HeldBatches:
    """Return a zone whose oldest batch was kept out, and whose youngest batch runs."""
    zone = HeldBatches()
    zone.add([BatchRef(id=name, location="", files=2, bytes=2) for name in "abc"], 1.0)
    zone.keep_out("a", "not_null failed")
    zone.update("c", state="running")
    return zone


def test_a_batch_that_main_holds_by_any_run_overtakes_those_before_it_alone() -> None:
    zone = kept_out_zone()
    zone.remove(["b"])
    retried = BatchCommand(action="retry", batch="a", by="ana")
    assert "the younger batch b was loaded" in zone.problem_of_request(retried, in_order=True)
    halves = [BatchRef(id=name, location="", files=1, bytes=1) for name in ("a1", "a2")]
    zone.split(SplitBatch(batch="a", by="ana"), halves)
    assert [batch.overtaken_by for batch in zone.all] == ["b", "b", ""]
    zone.keep_out("c", "failed")
    assert not zone.problem_of_request(BatchCommand(action="retry", batch="c", by="ana"), in_order=True)
    assert "no batch" in zone.problem_of_request(retried, in_order=True)


def test_what_a_pipeline_says_of_conflicts_and_transforms_decides_about_the_order() -> None:
    def order(write: str) -> str:
        pipeline = parse_pipeline(f"name: p\nwrite: {{{write}}}\ntables: {{t.x: {{}}}}\n", "p.yml")
        return rule_of("backfill each", pipeline.write, pipeline.tables).order

    assert order("mode: sql, statements: [INSERT INTO t.x SELECT 1]") == "one at a time"
    assert order("mode: sql, on_conflict: rebase, statements: [INSERT INTO t.x SELECT 1]") == "any"
    reading = "source: {{path: a.csv}}, transform: SELECT * FROM source WHERE id NOT IN (SELECT id FROM {})"
    assert order(reading.format("lake.T.x")) == "one at a time"
    assert order(reading.format("t.others")) == "any"


def test_main_is_asked_where_rows_may_be_older(tmp_path: Path) -> None:
    def asks(kind: Kind, **order: Any) -> bool:
        pipeline = pipeline_of(kind, tmp_path)
        return may_be_older(LoadOrder(**order), pipeline.write, pipeline.tables)

    for kind, traits in TRAITS.items():
        assert asks(kind, partition="2018") == (traits.order_matters and not traits.replaces_partitions)
        assert not asks(kind) and not asks(kind, partition="2018", over_younger=True)
    assert asks("merge", runs=["r"]) and not asks("merge", runs=["r"], over_younger=True)


@pytest.mark.parametrize("publish", [True, False])
def test_a_run_that_publishes_nothing_may_be_of_any_age(publish: bool, tmp_path: Path) -> None:
    options = start_run.StartOptions(publish=publish, order=LoadOrder(partition="2018"))
    starter, loaded = Starter("ana", tmp_path), RunInput(digest="d")
    settings, pipeline = Settings(), pipeline_of("merge", tmp_path)
    making = start_run.make_request(client_without_attributes(), settings, pipeline, loaded, starter, options)
    request, _ = asyncio.run(making)
    assert request.order == LoadOrder(partition="2018", over_younger=not publish)


def test_a_write_of_partitions_needs_partitions() -> None:
    with pytest.raises(InvalidPipeline, match=r"would replace all rows of t.x: .* State its `partition_by`, or write"):
        parse_pipeline(
            "name: p\nwrite: {mode: overwrite_partitions, source: {path: a.csv}}\ntables: {t.x: {}}\n", "p.yml"
        )


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        ("2018-02", "2018-01", True),
        ("2018-01", "2018-02", False),
        ("2018-01", "2018-01", False),
        ("2018-02", "2018", False),
        ("2019-01", "2018", True),
        ("2018", "2018-02", False),
        ("2018-01..2018-03", "2018-02", True),
        ("emea", "apac", False),
        ("2018-02", "apac", False),
        ("2026-03-02T05:30:00+01:00", "2026-03-01T05:30:00+01:00", True),
        ("2026-03-02T05:30:00+01:00", "2026-03-01", True),
        ("2026-03-02T05:30:00+01:00", "2026-03-02", False),
        ("2026-03-02", "2026-03-02T05:30:00+01:00", False),
        ("2026-03-03", "2026-03-02T05:30:00+01:00", True),
        ("2026-10-25T02:00:00+01:00", "2026-10-25T02:45:00+02:00", True),  # 15 minutes later, in winter time
        ("2026-10-25T02:45:00+02:00", "2026-10-25T02:00:00+01:00", False),
        ("2018-13", "2018-01", False),
        ("20180301", "20180201", False),
    ],
)
def test_a_partition_is_later_where_its_name_tells(one: str, other: str, later: bool) -> None:
    assert is_later(one, other) == later


def test_the_first_partition_out_of_order_is_named() -> None:
    assert out_of_order(["2018", "emea", "2019", "2020"]) is None
    assert out_of_order(["2019", "emea", "2018"]) == ("2018", "2019")
    assert latest_of(["2018", "2020", "2019", "emea"], "2018") == "2020" and latest_of(["2017"], "2018") == ""
