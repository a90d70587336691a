"""Control worker and Spark worker as two system users: the attempts of a hostile job, and the limits that stop it."""

import grp
import json
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devstack.stack import ROOT
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import EndedRun, SystemHarness
from tests.harness.two_users import TwoUsers, mode_of, python_for_all

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can create users of the system"),
    pytest.mark.skipif(not all(map(shutil.which, ("useradd", "setpriv"))), reason="useradd and setpriv are needed"),
]

_SECRET, _TEMPORAL_SECRET = "xoxb-hunter2", "hunter2-of-temporal"
_PROBE = """\
import ctypes, json, os, signal, sys
from pathlib import Path

def attempts(aims):
    \"\"\"Yield what is tried, by a name; each is a function that succeeds only where the two users are not apart.\"\"\"
    pid, home, lake = aims["pid"], Path(aims["home"]), Path(aims["lake"])
    for file in aims["files"]:
        yield f"read {file}", lambda file=file: Path(file).read_bytes()
        yield f"append to {file}", lambda file=file: open(file, "ab").close()
    for entry in ("environ", "mem", "maps", "fd", "cwd"):
        path = f"/proc/{pid}/{entry}"
        read = os.listdir if entry == "fd" else os.readlink if entry == "cwd" else lambda path: open(path, "rb").read(1)
        yield f"look into {path}", lambda read=read, path=path: read(path)
    for entry in ("environ", "mem"):
        path = f"/proc/{aims['own_worker']}/{entry}"
        yield f"look into the worker at {path}", lambda path=path: open(path, "rb").read(1)
    yield "list its folder", lambda: os.listdir(home)
    yield "list its runs", lambda: os.listdir(home / "sluice" / "runs")
    yield "write into its folder", lambda: (home / "planted").touch()
    jars = Path(aims["own"], "sluice", "jars")
    yield "replace the jars of other jobs", lambda: jars.rename(jars.with_name("old"))
    for name in ("sluice-audits", "sluice-inputs", "sluice"):
        yield f"write into {name}", lambda name=name: (lake / name / "planted").touch()
        yield f"rename {name}", lambda name=name: os.rename(lake / name, lake / f"{name}-moved")
    yield "list the reports", lambda: os.listdir(lake / "sluice-audits")
    for number in (0, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        yield f"signal {int(number)}", lambda number=number: os.kill(pid, number)
    yield "trace it", trace(pid)
    yield "become its user", lambda: os.setuid(aims["uid"])
    yield "become root", lambda: os.setuid(0)
    yield "gain rights by a program", privileges
    for entry in aims["code"]:
        yield f"change {entry}", lambda entry=entry: open(entry, "ab").close()

def trace(pid):
    def attach():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(16, pid, 0, 0):
            raise PermissionError(ctypes.get_errno(), "ptrace")
    return attach

def privileges():
    status = Path("/proc/self/status").read_text()
    if "NoNewPrivs:\\t1" in status:
        raise PermissionError("no new privileges")

def outcome(attempt):
    try:
        attempt()
    except (PermissionError, ChildProcessError) as error:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "SUCCEEDED"

def tried(aims, *beginnings):
    return {name: outcome(attempt) for name, attempt in attempts(aims) if name.startswith(beginnings or "")}
"""
_SHOW = """\
print(json.dumps(tried(json.loads(Path(sys.argv[1]).read_text()), *sys.argv[2:])))
"""
_JOB = """\
from pyspark.sql import SparkSession
aims = json.loads(Path(sys.argv[1]).read_text())
seen = {"tried": tried(aims), "environment": dict(os.environ), "uid": os.getuid(), "groups": os.getgroups()}
own = Path(aims["own"])
seen["own"] = {each.name: each.read_text() for each in own.iterdir() if each.is_file()}
Path(sys.argv[2]).write_text(json.dumps(seen))
spark = SparkSession.builder.getOrCreate()
spark.sql("INSERT INTO t.two_users VALUES (7)")
"""


@pytest.fixture(scope="module")
def users(stack: dict[str, str]) -> Iterator[TwoUsers]:
    """Two throw-away users, set up by the command, with both workers running."""
    names = ("TEMPORAL_ADDRESS", "TEMPORAL_UI", "NESSIE_URI", "NESSIE_WRITER_TOKEN_FILE", "NESSIE_PUBLISHER_TOKEN_FILE")
    settings = {name: stack[name] for name in names}
    settings |= {"SLUICE_HOME": stack["SLUICE_HOME"], "SLUICE_TASK_QUEUE": "two-users", "SPARK_SLOTS": "2"}
    settings |= {"SLUICE_INSTALLATION": "two-users", "SLACK_TOKEN": _SECRET, "SLACK_API_URL": "http://127.0.0.1:9/"}
    settings |= {"TEMPORAL_GRPC_META_X_KEY": _TEMPORAL_SECRET, "SLUICE_HEARTBEAT_TIMEOUT": "5"}
    users = TwoUsers(settings)
    try:
        python = python_for_all(users.folder)
        if isinstance(python, str):
            pytest.skip(python)
        users.python = python
        users.set_up(python)
        for role in ("control", "spark"):
            users.start(role, SLACK_TOKEN=f"{_SECRET}-of-the-shell")
        yield users
    finally:
        users.remove()


@pytest.fixture(scope="module")
def runs(users: TwoUsers, stack: dict[str, str]) -> SystemHarness:
    """A harness that starts runs on the two workers, with files that both can read."""
    folder = users.folder / "landing"
    folder.mkdir()
    given = {"SLUICE_TASK_QUEUE": "two-users", "SLUICE_INSTALLATION": "two-users", "WAREHOUSE": str(users.lake)}
    return SystemHarness(folder, {**os.environ, **stack, **given})


def _shared(runs: SystemHarness, name: str, ids: list[int], checks: str = "[unique: id]", more: str = "") -> str:
    text = pipeline("two-users", csv_file(runs.folder / f"{name}.csv", [{"id": each} for each in ids]), checks, more)
    return text.replace("name: two-users", f"name: two-users-{name}")


@pytest.fixture(scope="module")
def first(runs: SystemHarness) -> EndedRun:
    """A run whose checks both workers answer."""
    checks = "[unique: id, sql: {query: SELECT * FROM t.two_users WHERE id > 100, name: big, severity: warn}]"
    ended = runs.run(_shared(runs, "a", [1, 555], checks))
    assert ended.json["outcome"] == "published", ended
    return ended


@pytest.fixture(scope="module")
def waiting(runs: SystemHarness, first: EndedRun) -> str:
    """A run that waits for approval while the hostile job publishes."""
    run = runs.start(_shared(runs, "b", [3], more="approval: {timeout: 1h}"))
    runs.wait_for_stage(run, "waiting for approval")
    return run


@pytest.fixture(scope="module")
def aims(users: TwoUsers, stack: dict[str, str], first: EndedRun) -> dict[str, Any]:
    """The targets of the hostile job, all of which exist."""
    home, own = users.home / "control", users.home / "spark"
    report = users.lake / "sluice-audits" / "two-users-a" / first.json["run_id"] / "report.json"
    manifests = [*(users.lake / "sluice-inputs").rglob("*.jsonl")]
    secret = [home / ".env", home / "nessie.token", users.home / "spark.environment", report, users.env]
    secret.append(Path(stack["NESSIE_PUBLISHER_TOKEN_FILE"]))
    assert manifests and all(each.is_file() for each in secret)
    return {
        "pid": users.workers["control"].pid,
        "own_worker": users.workers["spark"].pid,
        "uid": pwd.getpwnam(users.control).pw_uid,
        "home": str(home),
        "own": str(own),
        "lake": str(users.lake),
        "files": [str(each) for each in secret],
        "code": [str(each) for each in (ROOT / "worker.py", own / ".env", own / "nessie.token", *manifests)],
        "report": str(report),
    }


@pytest.fixture(scope="module")
def hostile(users: TwoUsers, runs: SystemHarness, waiting: str, aims: dict[str, Any]) -> dict[str, Any]:
    """The findings of the hostile job. Its run is published: it may write to its branch, and does."""
    folder = runs.folder
    seen_file = folder / "seen.json"
    seen_file.touch()
    seen_file.chmod(0o666)
    (folder / "aims.json").write_text(json.dumps(aims))
    (folder / "hostile.py").write_text(_PROBE + _JOB)
    job = f"{{job: {folder / 'hostile.py'}, args: ['{folder / 'aims.json'}', '{seen_file}'], attempts: 1}}"
    ended = runs.run(f"name: hostile\nwrite: {job}\ntables: [t.two_users]\n")
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    seen: dict[str, Any] = json.loads(seen_file.read_text())
    return seen


def test_a_hostile_job_reaches_nothing_of_the_control_worker(
    users: TwoUsers, runs: SystemHarness, aims: dict[str, Any], hostile: dict[str, Any], stack: dict[str, str]
) -> None:
    assert len(hostile["tried"]) > 30 and {*hostile["tried"].values()} == {"refused"}, hostile["tried"]
    assert users.workers["control"].poll() is None
    assert hostile["uid"] == pwd.getpwnam(users.spark).pw_uid != aims["uid"]
    assert {*hostile["groups"]} <= {grp.getgrnam(each).gr_gid for each in (users.group, users.spark)}
    publisher, writer = (
        Path(stack[f"NESSIE_{role}_TOKEN_FILE"]).read_text().strip() for role in ("PUBLISHER", "WRITER")
    )
    for secret in (_SECRET, _TEMPORAL_SECRET, publisher):
        assert secret not in json.dumps(hostile)

    # The control worker's own user can read what the job could not:
    probe, what = runs.folder / "probe.py", str(runs.folder / "aims.json")
    probe.write_text(_PROBE + _SHOW)
    by_control = json.loads(users.run_as("control", str(probe), what, "read ", "list ", "signal 0").stdout)
    reached = {name for name, how in by_control.items() if how == "SUCCEEDED"}
    files = {f"read {aims['home']}/.env", f"read {aims['home']}/nessie.token", f"read {aims['report']}"}
    assert files | {"list its folder", "list the reports", "signal 0"} <= reached
    # The Spark worker gets Temporal's credentials by its environment, as root's file states:
    environment = Path(f"/proc/{users.workers['spark'].pid}/environ").read_text()
    assert _TEMPORAL_SECRET in environment and _SECRET not in environment
    # A remaining risk: the job can read the Spark worker's own files, including the writer's token.
    assert hostile["own"]["nessie.token"].strip() == writer


def test_runs_are_audited_rebased_and_recorded_over_both_users(
    users: TwoUsers, runs: SystemHarness, first: EndedRun, waiting: str, hostile: dict[str, Any], lake: LakeReader
) -> None:
    """Each worker reads the other's files in the lake: one runs DuckDB and a rebase, the other Spark."""
    assert {each["answered_by"] for each in first.json["checks"]} >= {"duckdb", "spark"}, first.json["checks"]
    runs.approve(waiting)
    runs.wait_for_attempt(waiting, 2)  # a rebased branch is another branch, which needs another decision
    runs.approve(waiting)
    rebased = runs.wait_for_end(waiting).json
    assert rebased["outcome"] == "published" and [each["resolved"] for each in rebased["conflicts"]] == ["rebased"]
    assert sorted(row["id"] for row in lake.rows("t.two_users")) == [1, 3, 7, 555]

    report = json.loads(
        (users.lake / "sluice-audits" / "two-users-a" / first.json["run_id"] / "report.json").read_text()
    )
    (big,) = [each for each in report["checks"] if each["check"] == "sql"]
    assert big["sample"] and [*(users.lake / "sluice-scans" / "two-users-a").rglob("*-spark.json")]
    owners = {pwd.getpwuid(each.stat().st_uid).pw_name for each in users.lake.rglob("*.metadata.json")}
    assert owners == {users.control, users.spark}
    strangers = [each for each in users.lake.rglob("*") if each.stat().st_mode & stat.S_IRWXO]
    assert not strangers, "others than the two users can reach files of the lake"


def test_the_command_can_be_repeated(users: TwoUsers) -> None:
    """The command also works while the workers run. It reads the settings again, and keeps root's environment file."""

    def made() -> dict[str, tuple[str, str]]:
        files = [each for role in ("control", "spark") for each in (users.home / role).iterdir()]
        files += [users.home / "spark.environment", users.lake, *users.lake.glob("sluice*")]
        return {str(each): (mode_of(each), each.read_text() if each.is_file() else "") for each in files}

    before, commands = made(), users.commands.copy()
    assert {mode_of(users.home / role) for role in ("control", "spark")} == {"root 750"}
    assert mode_of(users.home / "spark" / ".env") == "root 640"
    assert mode_of(users.home / "spark.environment") == "root 600"
    with (users.home / "spark.environment").open("a") as file:
        file.write("AWS_PROFILE=jobs\n")
    with users.env.open("a") as file:
        file.write("SLACK_CHANNEL='other'\n")
    printed = users.set_up(users.python)
    assert "created" not in printed and users.commands == commands
    changed = {name for name, state in made().items() if state != before[name]}
    assert changed == {str(users.home / "control" / ".env"), str(users.home / "spark.environment")}
    assert "AWS_PROFILE" in (users.home / "spark.environment").read_text()


def test_nothing_of_others_is_taken(users: TwoUsers) -> None:
    """The command refuses an existing group or lake, and secrets or files that jobs could reach."""
    other = TwoUsers(users.settings)
    try:
        assert f"the group {users.group} is there already" in other.refusal(users.python, "--group", users.group)
        parts = [other.lake / name / "p" / "a" for name in ("t", "sluice-inputs", "sluice-scans")]
        for part in parts:
            csv_file(part, [{"id": 1}])
        refused = other.refusal(users.python)
        assert f"{other.lake} exists and does not belong to {other.control}" in refused
        assert {mode_of(part) for part in parts} == {"root 644"}
        subprocess.run(["sh", "-c", refused.split(" run\n")[1].split("\nand this command")[0]], check=True)
        assert [mode_of(part) for part in parts] == [
            f"{other.control} 660",
            f"{other.control} 640",
            f"{other.spark} 640",
        ]
        other.env.chmod(0o644)
        approvers = other.folder / "approvers"
        approvers.touch()
        approvers.chmod(0o666)
        with other.env.open("a") as file:
            file.write(f"SLUICE_APPROVERS_FILE='{approvers}'\n")
        problems = other.refusal(users.python)
        assert f"{other.spark} can read {other.env}" in problems
        assert f"{other.spark} can change {approvers}" in problems
        other.env.chmod(0o600)
        approvers.chmod(0o644)
        other.set_up(users.python)
    finally:
        other.remove()
    left = {user.pw_name for user in pwd.getpwall()} | {group.gr_name for group in grp.getgrall()}
    assert not left & {other.control, other.spark, other.group}
