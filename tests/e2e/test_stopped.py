"""Runs that must not publish: stopped by the audit, by a person, by time, by a cancel."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from sluice.approval.decisions import Decision
from tests.harness.command_line import PROGRAM
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import spark_processes, wait_for
from tests.harness.system import SystemHarness
from workflows.write_audit_publish import WriteAuditPublish

ROWS: list[dict[str, Any]] = [{"id": 1, "kind": "a"}, {"id": 2, "kind": None}, {"id": 2, "kind": "x"}]
SLOW_JOB = (
    "import time\nfrom pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    "spark.range(7).writeTo('t.slow').append() if spark.catalog.tableExists('t.slow') "
    "else spark.range(7).writeTo('t.slow').create()\n"
    "time.sleep(1800)\n"
)


def test_a_failed_audit_quarantines_and_main_stays(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "bad.csv", ROWS)
    checks = (
        "[not_null: [id, kind], unique: [id], accepted_values: {column: kind, values: [a, b], severity: warn}, "
        "row_count: {max: 1, severity: warn}]"
    )
    before = lake.head()
    ended = system.run_command(pipeline("bad", source, checks))
    result = ended.json
    assert (ended.code, result["outcome"], result["cause"]) == (3, "quarantined", "audit")
    verdicts = {(c["check"], *c["columns"]): (c["verdict"], c["failed_rows"]) for c in result["checks"]}
    assert verdicts == {
        ("not_null", "id"): ("pass", 0),
        ("not_null", "kind"): ("fail", 1),
        ("row_count",): ("warn", None),
        ("unique", "id"): ("fail", 2),
        ("accepted_values", "kind"): ("warn", 1),
    }
    samples = {(c["check"], *c["columns"]): c["sample"] for c in result["checks"]}
    assert samples["not_null", "kind"] == [{"kind": None, "id": 2}]
    assert samples["accepted_values", "kind"] == [{"kind": "x", "id": 2}]
    assert samples["unique", "id"] == [{"id": 2, "kind": None}, {"id": 2, "kind": "x"}]
    assert lake.head() == before
    assert lake.branches("/bad/") == [result["branch"]]
    assert result["branch"].startswith("quarantine/bad/20") and result["branch"].endswith(result["run_id"])
    kept = lake.commit(lake.head(result["branch"]))  # the command says why, and changes nothing
    assert kept["parentCommitHashes"] == [result["audited_hash"]]
    assert kept["allProperties"]["sluice.cause"] == ["audit"]
    for name in ("sluice.quarantined-hash", "sluice.audited-hash"):
        assert kept["allProperties"][name] == [result["audited_hash"]]
    assert len(lake.rows("t.bad", result["branch"])) == 3

    discarding = system.run(pipeline("bad2", source, "[not_null: kind]", "on_failure: discard"))
    assert (discarding.code, discarding.json["outcome"], discarding.json["branch"]) == (3, "discarded", None)
    assert not lake.branches("/bad2/")


async def test_a_rejection_by_signal(system: SystemHarness, lake: LakeReader, tmp_path: Path, client: Client) -> None:
    source = csv_file(tmp_path / "rejected.csv", ROWS)
    run = system.start(pipeline("rejected", source, "[row_count: 1]", "approval: {required: 2, timeout: 1h}"))
    waiting = system.wait_for_stage(run, "waiting for approval")
    unseen = system.command("approve", run, "--by", "ana")
    assert (unseen.code, "say which report you saw" in unseen.err) == (2, True)
    other = system.command("approve", run, "--by", "ana", "--hash", "0" * 12)
    assert (other.code, "look again" in other.err) == (2, True)
    named = ("--hash", f"{waiting['audited_hash'][:12]}:{waiting['audit_digest'][:12]}")
    assert system.command("approve", run, "--by", " ", *named).code == 2
    system.approve(run)
    twice = system.command("approve", run, "--by", "ana", *named)
    assert (twice.code, "ana decided already" in twice.err) == (2, True)
    handle = client.get_workflow_handle_for(WriteAuditPublish.run, run)
    await handle.signal(WriteAuditPublish.approve, Decision(by="ben", audited_hash="0" * 64))
    await handle.signal(WriteAuditPublish.reject, Decision(by="ben", reason="two kinds for one id"))
    result = system.wait_for_end(run)
    assert (result.code, result.json["outcome"], result.json["cause"]) == (4, "quarantined", "rejected")
    assert result.json["reason"] == "rejected by ben: two kinds for one id"
    approval = result.json["approval"]
    assert [(each["by"], each["approve"]) for each in approval["decisions"]] == [("ana", True), ("ben", False)]
    assert "look again" in approval["refused"][-1]["why"]
    late = system.command("approve", run, "--by", "cleo")
    assert (late.code, "has ended" in late.err) == (2, True)


def test_an_approval_that_comes_too_late(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", ROWS)
    before = lake.head()
    ended = system.run(pipeline("unanswered", source, "[row_count: 1]", "approval: {timeout: 2s}\non_failure: discard"))
    assert (ended.code, ended.json["outcome"], ended.json["cause"]) == (4, "discarded", "expired"), ended
    assert ended.json["approval"]["expired"] is True
    assert lake.head() == before
    assert not lake.branches("unanswered")


def _restore_interrupts() -> None:
    """Let a child process be interrupted even if the tests run in the background, where SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _detaches(system: SystemHarness, run: str) -> None:
    """Assert that Ctrl-C ends the command that follows the run, and not the run."""
    command = [sys.executable, str(PROGRAM), "watch", run, "--json"]
    follower = subprocess.Popen(
        command,
        cwd=system.folder,
        env=dict(system.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_restore_interrupts,  # noqa: PLW1509  # it takes no lock
    )
    assert follower.stderr
    lines = []
    for line in follower.stderr:  # when the command shows how to decide, it follows the run
        lines.append(line)
        if " reject " in line:
            break
    follower.send_signal(signal.SIGINT)
    out, rest = follower.communicate(timeout=90)
    err = "".join(lines) + rest
    assert (follower.returncode, out) == (130, "")
    assert "the run goes on" in err
    assert system.status(run)["stage"] == "waiting for approval"


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param("writing", marks=[pytest.mark.cold, pytest.mark.sentinel("a cancel in a write")]),
        "waiting for approval",
    ],
)
def test_a_cancel_leaves_nothing(stage: str, system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    if stage == "writing":
        (tmp_path / "slow.py").write_text(SLOW_JOB)
        run = system.start(f"name: slow\nwrite: {{job: {tmp_path / 'slow.py'}}}\ntables: [t.slow]\n")
    else:
        source = csv_file(tmp_path / "waits.csv", ROWS)
        run = system.start(pipeline("waits", source, "[row_count: 1]", "approval: {timeout: 1h}"))
    status = system.wait_for_stage(run, stage)
    branch, run_id = status["branch"], status["run_id"]
    if stage == "writing":
        wait_for(lambda: lake.rows("t.slow", branch), lambda: "the job never wrote")
        assert spark_processes(run_id)
        assert system.command("status", run).out.startswith("writing  starting Spark")
    else:
        _detaches(system, run)
    before = lake.head()
    system.cancel(run)
    ended = system.wait_for_end(run)
    assert (ended.code, ended.json["outcome"], ended.json["branch"]) == (5, "cancelled", None)
    assert not spark_processes(run_id)
    assert not lake.branches(run_id)
    assert lake.head() == before
    assert system.command("cancel", run).code == 2
