"""The life of a quarantine, and of a publication by mistake."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client

from lakehouse.open_catalog import open_catalog
from runtime.installation.identity import with_installation
from sluice.contracts.quarantine import ReapBranchesInput
from sluice.identifiers import reaper_schedule_id
from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import wait_for
from tests.harness.system import SystemHarness
from workflows.quarantine.reap_branches import ReapBranches

BAD = [{"id": 1, "v": 5}, {"id": 2, "v": -1}]


def _kept_out(system: SystemHarness, folder: Path, name: str, more: str = "") -> dict[str, Any]:
    source = csv_file(folder / f"{name}.csv", BAD)
    ended = system.run(pipeline(name, source, "[expression_is_true: v > 0]", more))
    assert ended.code == 3, ended.err
    return ended.json


def _quarantine(system: SystemHarness, *words: str) -> dict[str, Any]:
    output = system.command("quarantine", *words, "--json")
    assert output.code == 0, output.err
    return output.json


@pytest.mark.slow
def test_listed_shown_kept_longer_and_discarded(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    kept = _kept_out(system, tmp_path, "life", "keep: 2d")
    run = kept["run_id"]
    (listed,) = [each for each in _quarantine(system, "list")["quarantined"] if each["run_id"] == run]
    assert (listed["branch"], listed["cause"]) == (kept["branch"], "audit") and "expression_is_true" in listed["reason"]
    shown = _quarantine(system, "show", run)
    assert shown["checks"][0]["verdict"] == "fail" and shown["tables"]["t.life"]["change"]["added_rows"] == 2
    different = _quarantine(system, "show", "life")["tables"]["t.life"]
    assert different["rows"] == BAD and different["columns"] == ["+ id int", "+ v int"] and different["bytes"] > 0
    before = listed["expires"]
    _quarantine(system, "keep", run, "--for", "30d", "--yes")
    (listed,) = [each for each in _quarantine(system, "list")["quarantined"] if each["run_id"] == run]
    assert listed["expires"] > before
    for command in (("list",), ("show", run), ("show", run, "--rows", "2")):
        human = system.command("quarantine", *command)
        assert human.code == 0 and run in human.out
        assert (" added rows" in human.out) == ("--rows" in command)
        assert command[-1] != "2" or human.out.index(" bad row") < human.out.index(" added rows"), "bad rows come first"
    _quarantine(system, "discard", run, "--yes")
    assert not lake.branches(run)
    again = system.command("quarantine", "discard", run)
    assert again.code == 2 and "nothing of" in again.err


@pytest.mark.slow
def test_released_only_if_the_audit_passes_now(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    kept = _kept_out(system, tmp_path, "release")
    run = kept["run_id"]
    unasked = system.command("quarantine", "release", run, "--json")
    assert unasked.code == 2 and "Add --yes" in unasked.err and run in unasked.err
    refused = system.command("quarantine", "release", run, "--json", "--yes")
    assert (refused.code, refused.json["outcome"], refused.json["branch"]) == (3, "discarded", None)
    assert lake.branches(run) == [kept["branch"]] and lake.rows("t.release") == []
    right = system.file(pipeline("release", tmp_path / "release.csv", "[expression_is_true: v > -5]"))
    output = system.command("quarantine", "release", run, "--pipeline", str(right), "--json", "--yes")
    assert (output.code, output.json["outcome"]) == (0, "published"), output
    assert sorted(row["v"] for row in lake.rows("t.release")) == [-1, 5]
    assert not lake.branches(run) and not lake.branches(output.json["run_id"])
    again = system.run(pipeline("release", tmp_path / "release.csv", "[expression_is_true: v > -5]"))
    assert (again.code, again.json["outcome"]) == (0, "skipped") and "already published" in again.json["reason"]


@pytest.mark.slow
def test_repaired_by_sql_and_published_after_an_audit(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    kept = _kept_out(system, tmp_path, "mend")
    other = system.run(
        pipeline("mend", csv_file(tmp_path / "more.csv", [{"id": 3, "v": 3}]), "[expression_is_true: v > 0]")
    )
    assert other.code == 0  # main moved meanwhile
    output = system.command(
        *("quarantine", "repair", kept["run_id"], "--sql", "UPDATE t.mend SET v = 7 WHERE v < 0", "--json", "--yes")
    )
    assert (output.code, output.json["outcome"]) == (0, "published"), output
    assert sorted((row["id"], row["v"]) for row in lake.rows("t.mend")) == [(1, 5), (2, 7), (3, 3)]
    assert lake.commit(output.json["main_after"])["parentCommitHashes"][1] == output.json["audited_hash"]
    assert not lake.branches(kept["run_id"])
    wrong = system.command("quarantine", "repair", "mend", "--sql", "DROP TABLE t.mend")
    assert wrong.code == 2 and "is not allowed: write DELETE FROM" in wrong.err
    silent = system.command("quarantine", "repair", "mend")
    assert silent.code == 2 and "give the repair by --sql" in silent.err


async def test_the_reaper_touches_only_what_nobody_deals_with(
    system: SystemHarness, lake: LakeReader, client: Client, stack: dict[str, str], tmp_path: Path
) -> None:
    settings = with_installation(read_settings(stack))
    catalog = open_catalog(settings)
    more = "approval: {timeout: 1h}"
    terminated, waiting = [
        system.start(pipeline(name, csv_file(tmp_path / f"{name}.csv", [{"id": 1}]), "[row_count: 1]", more))
        for name in ("reap-gone", "reap-waiting")
    ]
    lost = system.wait_for_stage(terminated, "waiting for approval")
    held = system.wait_for_stage(waiting, "waiting for approval")
    await client.get_workflow_handle(terminated).terminate("by hand")
    unrecognized = ["wap/somebody/elses", "quarantine/somebody/elses"]
    for name in unrecognized:
        catalog.create_branch(name, catalog.initialize_main())
    expired = _kept_out(system, tmp_path, "reap-old", "keep: 1s")["branch"]
    time.sleep(1.5)
    schedule = client.get_schedule_handle(reaper_schedule_id(settings.installation.sluice_installation))
    description = await schedule.describe()
    assert description.schedule.spec.intervals

    async def reap_branches() -> dict[str, Any]:
        reap_input = ReapBranchesInput(grace=0)
        queue = settings.installation.sluice_task_queue
        reaped = await client.execute_workflow(ReapBranches.run, reap_input, id="reap-now", task_queue=queue)
        return reaped.model_dump()

    reaped = await reap_branches()
    branches = lake.branches()
    assert held["branch"] in branches and set(unrecognized) <= set(branches)
    assert lost["branch"] not in branches and expired not in branches
    assert reaped["expired"] == [expired] and reaped["freed_bytes"] > 0
    (kept,) = reaped["quarantined"]
    assert lost["run_id"] in kept and unrecognized[0] in reaped["unrecognized"]
    assert lake.rows("t.reap_gone", kept) == [{"id": 1}]
    again = await reap_branches()
    assert again["quarantined"] == again["expired"] == []
    system.cancel(waiting)
    wait_for(lambda: not lake.branches(held["run_id"]))
    for name in [*unrecognized, kept]:
        lake.discard(name)


@pytest.mark.slow
def test_rolled_back(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    checks = "[unique: {column: id, scope: table}]"
    grown = "[unique: {column: id, scope: table}, row_count: {min: 2, scope: table}]"  # untrue of earlier rows
    files = [csv_file(tmp_path / f"{n}.csv", [{"id": n}]) for n in range(2)]
    texts = [pipeline("back", files[0], checks), pipeline("back", files[1], grown)]
    first, second = (system.run(text).json for text in texts)
    assert first["outcome"] == second["outcome"] == "published"
    refused = system.command("rollback", first["run_id"], "--json")
    assert refused.code == 2 and "later runs built on it" in refused.err and second["workflow_id"] in refused.err
    file = str(system.file(texts[1]))
    by_file = system.command("rollback", second["run_id"], "--pipeline", file, "--yes")
    assert by_file.code == 3 and "name a pipeline file by --pipeline" in by_file.out, by_file
    undone = system.command("rollback", second["run_id"], "--json", "--yes")
    assert (undone.code, undone.json["outcome"]) == (0, "published"), undone
    assert f"t.back: audited by the checks under which {first['workflow_id']} published this version" in undone.err
    assert [row["id"] for row in lake.rows("t.back")] == [0]
    listed = system.command("list", "--pipeline", "back", COLUMNS="80").out
    assert listed.split()[:4] == ["run", "state", "started", "duration"]
    assert f"{second['workflow_id']} published, then rolled back by {undone.json['workflow_id']}" in " ".join(
        listed.split()
    )
    assert undone.json["tables"]["t.back"]["operation"] == "restore"
    assert [check["verdict"] for check in undone.json["checks"]] == ["pass"]
    commit = lake.commit(undone.json["main_after"])
    assert commit["parentCommitHashes"] == [second["main_after"], undone.json["audited_hash"]]
    whole = system.command("rollback", first["run_id"], "--with-later", "--json", "--yes")
    assert whole.json["outcome"] == "published" and lake.rows("t.back") == []
    again = system.command("rollback", "nothing-like-it")
    assert again.code == 2 and "main contains no published run" in again.err
    assert json.loads(whole.out)["tables"]["t.back"]["operation"] == "drop"


HALF = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE nessie.t.half_one USING iceberg AS SELECT 1 AS id")
raise SystemExit("the other table is not written")
"""


def test_half_of_a_job_is_kept_to_be_looked_at_and_never_released(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    (tmp_path / "half.py").write_text(HALF)
    job = f"{{job: {tmp_path / 'half.py'}, attempts: 1}}"
    ended = system.run(f"name: half\nwrite: {job}\ntables: {{t.half_one: {{}}, t.half_two: {{}}}}\n")
    assert (ended.code, ended.json["outcome"]) == (6, "failed"), ended
    kept = ended.json["branch"]
    assert lake.rows("t.half_one", kept) == [{"id": 1}]
    (listed,) = [each for each in _quarantine(system, "list")["quarantined"] if each["branch"] == kept]
    assert (listed["verified"], listed["problem"]) == (False, "")
    for command in (["release", kept], ["repair", kept, "--sql", "UPDATE t.half_one SET id = 2"]):
        refused = system.command("quarantine", *command)
        assert refused.code == 2 and "ended before the write was verified" in refused.err
    assert lake.branches(ended.json["run_id"]) == [kept] and lake.rows("t.half_one") == []
    lake.discard(kept)


async def test_rolled_back_after_temporal_forgot_the_run(
    system: SystemHarness, lake: LakeReader, client: Client, tmp_path: Path
) -> None:
    checks = "[unique: {column: id, scope: table}]"
    run = system.run(pipeline("forgotten", csv_file(tmp_path / "f.csv", [{"id": 1}]), checks)).json
    execution = WorkflowExecution(workflow_id=run["workflow_id"], run_id=run["run_id"])
    request = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
    await client.workflow_service.delete_workflow_execution(request)
    undone = system.command("rollback", run["main_after"][:16], "--json", "--yes")
    assert (undone.code, undone.json["outcome"]) == (0, "published"), undone
    assert lake.rows("t.forgotten") == []
    assert lake.commit(undone.json["main_after"])["allProperties"]["sluice.rolled-back-runs"] == [run["run_id"]]
    again = system.command("rollback", run["run_id"])
    assert again.code == 2 and "was rolled back already" in again.err
