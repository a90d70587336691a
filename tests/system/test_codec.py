"""The data that Temporal stores can be encrypted: payloads, failures, memos and details."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from devstack.stack import ROOT
from runtime.codec import AesCodec, read_codec
from sluice.errors import BadEnvironment
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

_TOKEN = "0123456789abcdef"
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"')


async def test_what_was_encrypted_is_decrypted_by_the_same_key_alone() -> None:
    old, new = {"old": b"1" * 32}, {"new": b"2" * 32, "old": b"1" * 32}
    (sealed,) = await AesCodec(old).encode([PLAIN])
    assert b"hello" not in sealed.SerializeToString() and b"json" not in sealed.SerializeToString()
    assert await AesCodec(new).decode([sealed, PLAIN]) == [PLAIN, PLAIN]
    assert (await AesCodec(old).encode([PLAIN]))[0].data != sealed.data
    with pytest.raises(ValueError, match="which SLUICE_CODEC_KEY_FILE does not contain"):
        await AesCodec({"new": b"2" * 32}).decode([sealed])
    with pytest.raises(ValueError, match="or was changed since"):
        await AesCodec({"old": b"2" * 32}).decode([sealed])
    sealed.data = sealed.data[:-1] + bytes([sealed.data[-1] ^ 1])
    with pytest.raises(ValueError, match="or was changed since"):
        await AesCodec(old).decode([sealed])


@pytest.mark.parametrize("text", ["short c2hvcnQ=", "noise ???", "lonely"])
def test_a_key_file_without_keys(text: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(BadEnvironment, match=r"keys:1: this is not a key"):
        read_codec(str(tmp_path / "keys"))


async def test_a_run_of_which_temporal_reads_nothing(
    system: SystemHarness, client: Client, stack: dict[str, str], tmp_path: Path
) -> None:
    keys = tmp_path / "codec.keys"
    assert system.command("codec-key", str(keys)).code == 0
    (tmp_path / "token").write_text(_TOKEN)
    environment = {**system.environment, "SLUICE_TASK_QUEUE": "codec", "SLUICE_CODEC_KEY_FILE": str(keys)}
    environment["SLUICE_CODEC_TOKEN_FILE"] = str(tmp_path / "token")
    sealed = SystemHarness(tmp_path, environment)
    worker = WorkerProcess(environment, tmp_path)
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "run_workflow.py"), "codec-server", "--port", "18234"],
        env=environment,
        cwd=tmp_path,
    )
    try:
        source = csv_file(tmp_path / "very_private_name.csv", [{"id": 1, "very_private_column": -1}])
        checks = "[expression_is_true: very_private_column > 0]"
        ended = sealed.run(pipeline("sealed", source, checks, "on_failure: discard"))
        assert ended.code == 3 and "very_private_column" in ended.json["reason"]
        broken = sealed.run(pipeline("sealed", source, "[not_null: very_private_colum]"))
        assert broken.code in (2, 6)
        run = ended.json
        history = await client.get_workflow_handle(run["workflow_id"], run_id=run["run_id"]).fetch_history()
        raw = b"".join(event.SerializeToString() for event in history.events)
        assert b"very_private" not in raw and b"binary/encrypted" in raw
        blind = system.command("status", run["workflow_id"])
        assert blind.code != 0 and "Traceback" not in blind.err, blind
        for harness, summary in ((system, ""), (sealed, "t.sealed from 1 file, ")):  # without the key, and with it
            runs = harness.command("list", "--limit", "100", "--json").json["runs"]
            (listed,) = [each for each in runs if each["run_id"] == run["run_id"]]
            assert listed["summary"].startswith(summary) and bool(listed["summary"]) == bool(summary)
        first = history.events[0].workflow_execution_started_event_attributes.input.payloads[0]
        body = {
            "payloads": [
                {
                    "metadata": {k: base64.b64encode(v).decode() for k, v in first.metadata.items()},
                    "data": base64.b64encode(first.data).decode(),
                }
            ]
        }
        wait_for(lambda: _answers("http://127.0.0.1:18234/decode"))
        assert requests.post("http://127.0.0.1:18234/decode", json=body, timeout=10).status_code == 401
        token = {"Authorization": f"Bearer {_TOKEN}"}
        answer = requests.post("http://127.0.0.1:18234/decode", json=body, headers=token, timeout=10)
        decoded = base64.b64decode(answer.json()["payloads"][0]["data"])
        assert b"very_private_column" in decoded
        assert answer.headers["Access-Control-Allow-Origin"] == stack["TEMPORAL_UI"]
        nonsense = requests.post(f"http://127.0.0.1:18234/{_TOKEN}/decode", data="nonsense", timeout=10)
        assert nonsense.status_code == 400
    finally:
        server.terminate()
        server.wait(20)
        worker.stop()


def _answers(url: str) -> bool:
    try:
        return requests.options(url, timeout=2).ok
    except requests.RequestException:
        return False
