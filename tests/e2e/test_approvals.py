"""Approvals that anybody can verify, by different people, none of whom started the run."""

import base64
import getpass
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness


@pytest.fixture
def people(
    system: SystemHarness, warm_stack: dict[str, str], tmp_path: Path
) -> Iterator[tuple[SystemHarness, dict[str, str]]]:
    """A harness whose worker accepts only signed decisions; and ana's and ben's public keys."""
    listed = {}
    for name in ("ana", "ben"):
        output = system.command("approver-key", str(tmp_path / f"{name}.pem"), "--by", name)
        assert output.code == 0 and (tmp_path / f"{name}.pem").stat().st_mode & 0o077 == 0
        listed[name] = output.out.split()[1]
    (tmp_path / "approvers").write_text("# who may decide\n" + "".join(f"{n} {k}\n" for n, k in listed.items()))
    environment = {**system.environment, "SLUICE_TASK_QUEUE": "approvals", "SLUICE_WORKER_ROLE": "control"}
    worker = WorkerProcess({**environment, "SLUICE_APPROVERS_FILE": str(tmp_path / "approvers")}, tmp_path)
    yield SystemHarness(tmp_path, environment, spark_queue=read_settings(warm_stack).spark_queue), listed
    worker.stop()


def test_two_people_sign_and_the_merge_commit_proves_it(
    people: tuple[SystemHarness, dict[str, str]], lake: LakeReader, tmp_path: Path
) -> None:
    system, listed = people
    more = "approval: {required: 2, four_eyes: true, timeout: 1h}"
    run = system.start(pipeline("signed", csv_file(tmp_path / "in.csv", [{"id": 1}]), more=more))
    waiting = system.wait_for_stage(run, "waiting for approval")

    def refused(by: str, why: str, **key: str) -> None:
        output = system.command("approve", run, "--by", by, **key)
        assert output.code == 2 and why in output.err, output

    ana, ben = ({"SLUICE_APPROVAL_KEY_FILE": str(tmp_path / f"{name}.pem")} for name in ("ana", "ben"))
    refused(getpass.getuser(), "`four_eyes` asks for another person", **ana)
    refused("ana", "it is not signed")
    refused("ana", "its signature is not ana's", **ben)
    refused("zoe", "zoe is not listed", **ana)
    (tmp_path / "broken.pem").write_text("nonsense")
    refused("ana", "holds no private key", SLUICE_APPROVAL_KEY_FILE=str(tmp_path / "broken.pem"))
    assert system.command("approve", run, "--by", "ana", "--reason", "looks right", **ana).code == 0
    refused("ANA@elsewhere", "decided already", **ana)
    assert system.command("approve", run, "--by", "ben", **ben).code == 0
    ended = system.wait_for_end(run)
    assert ended.json["outcome"] == "published", ended.json
    commit = lake.commit(ended.json["main_after"])["allProperties"]
    statements = json.loads(commit["sluice.approvals"][0])
    assert [each["by"] for each in statements] == ["ana", "ben"]
    for each in statements:
        signature = base64.b64decode(each.pop("signature"))
        words = json.dumps(each, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        Ed25519PublicKey.from_public_bytes(base64.b64decode(listed[each["by"]])).verify(signature, words)
        assert (each["audited_hash"], each["run_id"]) == (ended.json["audited_hash"], waiting["run_id"])
        assert each["audit_digest"] == commit["sluice.audit-digest"][0]
    assert len(ended.json["approval"]["refused"]) == 3


def test_a_key_is_never_overwritten(system: SystemHarness, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("mine")
    for command in ("approver-key", "codec-key"):
        output = system.command(command, str(file))
        assert output.code == 2 and "never overwritten" in output.err and file.read_text() == "mine"
