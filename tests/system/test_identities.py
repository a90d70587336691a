"""Writer and publisher: the requests that Nessie refuses a job, and the places where tokens must not appear."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import requests

from devstack.stack import ROOT
from lakehouse.open_catalog import open_catalog
from sluice.errors import BadEnvironment
from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import BYPASS, csv_file, pipeline
from tests.harness.processes import wait_for
from tests.harness.system import SystemHarness

_LOOK = """\
import os, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.conf.get("spark.sql.catalog.nessie.authentication.token"))
print(sorted(key for key in os.environ if "TOKEN" in key))
print("looked", flush=True)
time.sleep(3)
raise SystemExit("the password=hunter2secret is wrong")
"""


def test_a_job_that_writes_to_main_is_refused_by_the_server(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    assert system.run(pipeline("bypass", csv_file(tmp_path / "in.csv", [{"id": 1}]))).code == 0
    before = lake.head()
    (tmp_path / "job.py").write_text(BYPASS.format(table="bypass"))
    ended = system.run(f"name: bypass\nwrite: {{job: {tmp_path / 'job.py'}}}\ntables: [t.bypass]\n")
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (6, "failed", 1), ended
    assert "the job tried to change 'main', and Nessie refused it" in ended.json["reason"]
    assert lake.head() == before and [row["id"] for row in lake.rows("t.bypass")] == [1]
    assert not lake.branches(ended.json["run_id"])


@pytest.mark.sentinel("the permissions of Nessie")
@pytest.mark.parametrize(
    ("role", "reference", "allowed"),
    [
        ("writer", "main", False),
        ("writer", "quarantine/x", False),
        ("writer", "wap/x", True),
        ("reader", "wap/x", False),
        ("publisher", "main", True),
        ("publisher", "wap/x", True),
        ("publisher", "other", False),
        (None, "wap/x", False),
    ],
)
def test_who_may_commit_where(
    role: str | None, reference: str, allowed: bool, stack: dict[str, str], lake: LakeReader
) -> None:
    folder = Path(stack["NESSIE_WRITER_TOKEN_FILE"]).parent
    uri = stack["NESSIE_URI"]

    def session(who: str | None) -> requests.Session:
        session_of_role = requests.Session()
        if who:
            session_of_role.headers["Authorization"] = f"Bearer {(folder / f'{who}.jwt').read_text()}"
        return session_of_role

    source = {"type": "BRANCH", "name": "main", "hash": lake.head()}
    made = session("publisher").post(f"{uri}/trees", params={"name": reference, "type": "BRANCH"}, json=source)
    assert made.ok or reference in ("main", "other"), made.text
    head = lake.head(reference) if reference != "other" else lake.head()
    url = f"{uri}/trees/{reference.replace('/', '%2F')}@{head}/history/commit"
    unchanged = {"type": "UNCHANGED", "key": {"elements": ["sluice"]}}
    space = {"type": "NAMESPACE", "elements": ["probe"], "properties": {}}
    put = {"type": "PUT", "key": {"elements": ["probe"]}, "content": space}
    body = {"commitMeta": {"message": "a probe"}, "operations": [unchanged if reference == "main" else put]}
    answered = session(role).post(url, json=body)
    for each in ("wap/x", "quarantine/x"):
        if reference == each:
            lake.discard(each)
    if role is None:
        assert answered.status_code == 401
    elif reference == "other":
        assert made.status_code == 403 and not answered.ok
    else:
        assert answered.ok == allowed and (allowed or answered.status_code == 403), answered.text


def test_no_token_on_a_command_line_in_a_log_or_an_error(
    system: SystemHarness, stack: dict[str, str], tmp_path: Path
) -> None:
    """The job prints its own token and fails with a password. Neither appears in log, error, or history."""
    token = Path(stack["NESSIE_WRITER_TOKEN_FILE"]).read_text()
    publisher = Path(stack["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
    (tmp_path / "job.py").write_text(_LOOK)
    write = f"{{job: {tmp_path / 'job.py'}, attempts: 1}}"
    run = system.start(f"name: look\nwrite: {write}\ntables: [t.look]\nshow_values: true\n")
    home = Path(stack["SLUICE_HOME"])
    run_id = system.status(run)["run_id"]
    logs = home / "runs" / run_id
    wait_for(lambda: any("looked" in log.read_text() for log in logs.rglob("spark.log")))
    for process in psutil.process_iter():
        try:
            command, is_of_tests = " ".join(process.cmdline()), process.ppid() == os.getpid()
        except psutil.Error:
            continue
        if is_of_tests and "pyspark-shell" in command:
            continue  # if tests in this process read the lake before, this session is its own
        assert token not in command and publisher not in command
    (configuration,) = logs.rglob("spark.properties")
    assert token in configuration.read_text() and configuration.stat().st_mode & 0o077 == 0
    ended = system.command("watch", run, "--json")
    assert ended.json["outcome"] == "failed" and "hunter2" not in ended.out and "[hidden]" in ended.json["reason"]
    (log,) = logs.rglob("spark.log")
    text = log.read_text()
    assert "NESSIE" not in text and "PUBLISHER" not in text
    texts = [text, (home / "logs" / "worker.log").read_text(), _history(system, run)]
    assert not any(secret in each for each in texts for secret in (token, publisher, "hunter2"))


def _history(system: SystemHarness, run: str) -> str:
    program = (
        "import asyncio, os, sys\n"
        "from runtime.temporal_client import connect\n"
        "async def main():\n"
        "    client = await connect(dict(os.environ))\n"
        f"    history = await client.get_workflow_handle({run!r}).fetch_history()\n"
        "    sys.stdout.write(history.to_json())\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **system.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    events = json.loads(done.stdout)["events"]
    assert events
    return done.stdout


def test_a_wrong_token_is_said_plainly(system: SystemHarness, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("nonsense")
    settings = read_settings({**system.environment, "NESSIE_PUBLISHER_TOKEN_FILE": str(wrong)})
    with pytest.raises(BadEnvironment, match="does not accept the token of this process") as refused:
        open_catalog(settings).head(settings.catalog.sluice_main)
    assert "nonsense" not in str(refused.value)
    worker = subprocess.run(
        [sys.executable, str(ROOT / "worker.py")],
        env={**os.environ, **system.environment, "NESSIE_PUBLISHER_TOKEN_FILE": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert worker.returncode == 2 and "NESSIE_PUBLISHER_TOKEN_FILE" in worker.stderr, worker
    assert "No such file" in worker.stderr and "Traceback" not in worker.stderr, worker
