"""Approvals that anybody can verify, by different people, excluding the person who started the run."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness

PEOPLE = ("ana", "ben", "cleo")


@pytest.fixture
def people(
    system: SystemHarness, warm_stack: dict[str, str], tmp_path: Path
) -> Iterator[tuple[SystemHarness, dict[str, str]]]:
    """A harness whose worker accepts only signed decisions, and the public keys of these people."""
    listed = {}
    for name in PEOPLE:
        output = system.command("approver-key", str(tmp_path / f"{name}.pem"), "--by", name)
        assert output.code == 0 and (tmp_path / f"{name}.pem").stat().st_mode & 0o077 == 0
        listed[name] = output.out.split()[1]
    (tmp_path / "approvers").write_text("# who may decide\n" + "".join(f"{n} {k}\n" for n, k in listed.items()))
    environment = {**system.environment, "SLUICE_TASK_QUEUE": "approvals", "SLUICE_WORKER_ROLE": "control"}
    worker = WorkerProcess({**environment, "SLUICE_APPROVERS_FILE": str(tmp_path / "approvers")}, tmp_path)
    yield SystemHarness(tmp_path, environment, spark_queue=read_settings(warm_stack).installation.spark_queue), listed
    worker.stop()


@pytest.mark.slow
def test_two_people_sign_and_the_merge_commit_proves_it(
    people: tuple[SystemHarness, dict[str, str]], lake: LakeReader, tmp_path: Path
) -> None:
    system, listed = people
    more = "approval: {required: 2, four_eyes: true, timeout: 1h}"
    ana, ben, cleo = ({"SLUICE_APPROVAL_KEY_FILE": str(tmp_path / f"{name}.pem")} for name in PEOPLE)
    run = system.start(pipeline("signed", csv_file(tmp_path / "in.csv", [{"id": 1}]), more=more), again=False, **ana)
    waiting = system.wait_for_stage(run, "waiting for approval")
    named = ("--hash", f"{waiting['audited_hash'][:12]}:{waiting['audit_digest'][:12]}")

    def refused(by: str, why: str, **key: str) -> None:
        output = system.command("approve", run, "--by", by, *named, **key)
        assert output.code == 2 and why in output.err, output

    refused("Ana@elsewhere", "four eyes are required: another person has to decide", **ana)
    refused("ben", "it is not signed")
    refused("ben", "its signature is not ben's", **cleo)
    refused("zoe", "zoe is not listed", **ben)
    (tmp_path / "broken.pem").write_text("nonsense")
    refused("ben", "contains no private key", SLUICE_APPROVAL_KEY_FILE=str(tmp_path / "broken.pem"))
    first = system.command("approve", run, "--by", "ben", "--reason", "looks right", *named, **ben)
    assert first.code == 0 and " as ben (1 of 2 approvals, waits until 20" in first.out, first
    assert "not verified" not in first.out
    (listed_run,) = [each for each in system.command("list", "--json").json["runs"] if each["workflow_id"] == run]
    assert listed_run["stage"] == "waiting for approval (1 of 2)"
    assert "waiting for approval (1 of 2)" in system.command("list").out
    assert "1 of 2 approvals, waits until 20" in system.command("status", run).out
    refused("BEN@elsewhere", "decided already", **ben)
    last = system.command("approve", run, "--by", "cleo", *named, **cleo)
    assert last.code == 0 and " as cleo (2 of 2 approvals)" in last.out, last
    ended = system.wait_for_end(run)
    assert ended.json["outcome"] == "published", ended.json
    commit = lake.commit(ended.json["main_after"])["allProperties"]
    statements = json.loads(commit["sluice.approvals"][0])
    assert [each["by"] for each in statements] == ["ben", "cleo"]
    for each in statements:
        signature = base64.b64decode(each.pop("signature"))
        words = json.dumps(each, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        Ed25519PublicKey.from_public_bytes(base64.b64decode(listed[each["by"]])).verify(signature, words)
        assert (each["audited_hash"], each["run_id"]) == (ended.json["audited_hash"], waiting["run_id"])
        assert each["audit_digest"] == commit["sluice.audit-digest"][0]
    assert len(ended.json["approval"]["refused"]) == 3


def test_a_rejected_run_says_who_rejected_it(system: SystemHarness, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", [{"id": 1}])
    run = system.start(pipeline("refused", source, more="approval: {required: 2, timeout: 1h}"))
    waiting = system.wait_for_stage(run, "waiting for approval")
    named = ("--hash", waiting["audited_hash"])
    approved = system.command("approve", run, "--by", "ana", *named)
    assert approved.code == 0 and "The name is not verified: approvers have no keys here" in approved.out
    assert system.command("reject", run, "--by", "ben", "--reason", "not yet", *named).code == 0
    assert system.wait_for_end(run).json["outcome"] == "quarantined"
    output = system.command("status", run).out
    assert "rejected by ben: not yet" in output
    assert re.search(
        r"decisions  approved by ana at \d{4}-\d\d-\d\d \d\d:\d\d UTC; rejected by ben at .* UTC: not", output
    )


def test_runs_of_one_pipeline_are_told_apart(system: SystemHarness, tmp_path: Path) -> None:
    """Runs of other files differ by their id and files; runs of the same files differ by their run id."""
    source = csv_file(tmp_path / "in.csv", [{"id": 1}])
    text = pipeline("apart", source, "[row_count: 1]")
    first = system.run(text)
    second = system.run(text, again=True)
    assert (first.json["outcome"], second.json["outcome"]) == ("published", "published")
    runs = [each for each in system.command("list", "--json").json["runs"] if each["pipeline"] == "apart"]
    assert [each["run_id"] for each in runs] == [second.json["run_id"], first.json["run_id"]]
    assert "1 file, " in runs[0]["summary"]
    chosen = system.command(
        "list", "--pipeline", "apart", "--table", "t.apart", "--state", "published", "--since", "1h"
    )
    assert chosen.code == 0 and [line.split()[0] for line in chosen.out.splitlines()] == [
        "run",
        second.json["workflow_id"],
        first.json["run_id"],
    ]
    others = system.command("list", "--pipeline", "apart", "--state", "quarantined")
    assert (others.code, others.out.strip()) == (0, "There is no such run."), others
    output = system.command("list").out
    assert first.json["run_id"] in output and second.json["run_id"] not in output
    assert system.command("status", first.json["run_id"], "--json").json["run_id"] == first.json["run_id"]


def test_a_key_is_never_overwritten(system: SystemHarness, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("mine")
    for command in ("approver-key", "codec-key"):
        output = system.command(command, str(file))
        assert output.code == 2 and "never overwritten" in output.err and file.read_text() == "mine"
