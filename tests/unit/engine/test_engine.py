"""The surroundings of Spark: its Java, its command, its output, and the guard that ends it."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from activities.run.job_folder import create_job_folder
from engine.job import JobResult, SparkJob
from engine.process import guard
from engine.process.progress import OutputReader
from engine.process.supervise import run_supervised
from engine.spark.configuration import properties
from engine.spark.connect_server import LocalConnectServer
from engine.spark.jars import require_s3
from engine.spark.java import find_java
from engine.spark.job_errors import job_failure
from engine.spark.submit import command, environment
from lakehouse.nessie.spark import explain_refused_write, spark_properties
from sluice.contracts.references import LineageParent, RunRef
from sluice.errors import BadEnvironment, DiskFull, InvalidInput, JobFailed, WriteRefused
from sluice.settings import Settings
from tests.harness.processes import wait_for
from tests.harness.waiting import until


def java_home(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(("version", "actual"), [("1.8.0_392", "Java 8"), ("11.0.2", "Java 11"), ("25.0.1", "Java 25")])
def test_an_unsuitable_java_is_named(tmp_path: Path, version: str, actual: str) -> None:
    home = java_home(tmp_path / "java", version)
    with pytest.raises(BadEnvironment, match=f"JAVA_HOME={home} is {actual}"):
        find_java({"JAVA_HOME": str(home)})


def test_a_java_home_without_java(tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match="is not a Java installation"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_suitable_java(tmp_path: Path) -> None:
    home = java_home(tmp_path / "java", "21.0.8")
    assert find_java({"JAVA_HOME": str(home)}) == home
    assert find_java({"PATH": str(home / "bin")}) == home


def spark_job(folder: Path, **more: object) -> SparkJob:
    fields = {"program": Path("job.py"), "folder": folder, "branch": "wap/x/r/a1", "run_id": "r", "attempt": 1}
    fields |= {"catalog": spark_properties("nessie", "http://n/api/v2", "wap/x/r/a1", "abc"), **more}
    return SparkJob(**fields)  # type: ignore[arg-type]  # the fields are a test's to vary


def test_a_job_does_not_show_the_token_of_its_catalog(tmp_path: Path) -> None:
    job = spark_job(tmp_path, catalog={"spark.sql.catalog.nessie.authentication.token": "s3cret"})
    assert "s3cret" not in repr(job)
    with pytest.raises(TypeError, match="catalog"):
        SparkJob(Path("job.py"), tmp_path, "wap/x/r/a1")  # type: ignore[call-arg]  # what it must refuse


def test_the_job_sees_its_branch_and_cannot_leave_it(tmp_path: Path) -> None:
    evil = {"spark.sql.catalog.nessie.ref": "main", "spark.sql.files.ignoreCorruptFiles": "true", "spark.x": "y"}
    configuration = properties(Settings.of(sluice_home=tmp_path).spark_jobs, spark_job(tmp_path, conf=evil))
    assert configuration["spark.sql.catalog.nessie.ref"] == "wap/x/r/a1"
    assert configuration["spark.sql.catalog.nessie.ref.hash"] == "abc"
    assert configuration["spark.sql.files.ignoreCorruptFiles"] == "false"
    assert configuration["spark.x"] == "y"
    assert configuration["spark.sql.iceberg.snapshot-property.sluice.run-id"] == "r"
    assert configuration["spark.yarn.maxAppAttempts"] == "1"


def test_the_lineage_of_spark_has_the_run_as_its_parent(tmp_path: Path) -> None:
    run_id, root_id = str(uuid.uuid4()), str(uuid.uuid4())
    listener = {"spark.extraListeners": "x.Other,io.openlineage.spark.agent.OpenLineageSparkListener"}
    settings = Settings.of(sluice_home=tmp_path, openlineage_namespace="loads")
    job = spark_job(tmp_path, run_id=run_id, pipeline="permits", conf=listener)
    names = {key: value for key, value in properties(settings.spark_jobs, job).items() if "openlineage." in key}
    assert names == {
        f"spark.openlineage.{prefix}{key}": value
        for prefix in ("parent", "rootParent")
        for key, value in (("JobNamespace", "loads"), ("JobName", "permits"), ("RunId", run_id))
    }
    root = LineageParent(namespace="airflow", name="dag.task", run_id=root_id)
    started = properties(settings.spark_jobs, replace(job, lineage_root=root))
    assert started["spark.openlineage.parentRunId"] == run_id
    assert started["spark.openlineage.rootParentRunId"] == root_id
    assert started["spark.openlineage.rootParentJobName"] == "dag.task"
    own = properties(
        settings.spark_jobs, replace(job, conf={**listener, "spark.openlineage.rootParentJobName": "mine"})
    )
    assert own["spark.openlineage.rootParentJobName"] == "mine"
    for without in ({}, {"spark.extraListeners": "x.Other"}):
        configuration = properties(settings.spark_jobs, replace(job, conf=without))
        assert not [key for key in configuration if key.startswith("spark.openlineage.")]


def test_a_users_program_keeps_its_semantics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/their/modules")
    lenient = {"spark.sql.ansi.enabled": "false"}
    user_program = properties(
        Settings.of(sluice_home=tmp_path).spark_jobs, spark_job(tmp_path, conf=lenient, built_in=False)
    )
    assert user_program["spark.sql.ansi.enabled"] == "false" and "spark.sql.session.timeZone" not in user_program
    assert environment(Settings().spark_jobs, tmp_path, built_in=False)["PYTHONPATH"] == "/their/modules"
    built_in = properties(Settings.of(sluice_home=tmp_path).spark_jobs, spark_job(tmp_path, conf=lenient))
    assert built_in["spark.sql.ansi.enabled"] == "true" and built_in["spark.sql.session.timeZone"] == "UTC"


def test_only_built_in_jobs_record_no_source_lines(tmp_path: Path) -> None:
    settings, name = Settings.of(sluice_home=tmp_path).spark_jobs, "spark.python.sql.dataFrameDebugging.enabled"
    assert properties(settings, spark_job(tmp_path))[name] == "false"
    assert properties(settings, spark_job(tmp_path, conf={name: "true"}))[name] == "true"
    assert name not in properties(settings, spark_job(tmp_path, built_in=False))


def test_only_built_in_jobs_run_in_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark reads the times of ORC files in the time zone of its JVM."""
    monkeypatch.setenv("TZ", "America/New_York")
    monkeypatch.setattr("engine.spark.connect_server.find_java", lambda: tmp_path)
    settings = Settings.of(sluice_home=tmp_path, spark_properties_file=str(tmp_path / "more")).spark_jobs
    (tmp_path / "more").write_text("spark.executorEnv.TZ Europe/Berlin\n")
    for built_in, zone, on_executors in ((True, "UTC", "UTC"), (False, "America/New_York", "Europe/Berlin")):
        assert environment(settings, tmp_path, built_in=built_in)["TZ"] == zone
        configuration = properties(settings, spark_job(tmp_path, built_in=built_in))
        assert configuration["spark.executorEnv.TZ"] == on_executors
        assert ("spark.yarn.appMasterEnv.TZ" in configuration) is built_in
        _, variables = LocalConnectServer(settings, runs_built_in=built_in)._prepare(tmp_path / "warm")
        assert variables["TZ"] == zone
        started = (tmp_path / "warm" / "spark.properties").read_text()
        assert f"spark.executorEnv.TZ {on_executors}\n" in started


def test_settings_reach_the_job(tmp_path: Path) -> None:
    (tmp_path / "jars" / "s3").mkdir(parents=True)
    (tmp_path / "jars" / "s3" / "bundle.jar").touch()
    more = tmp_path / "more.properties"
    more.write_text("# a comment\nspark.a 1\nspark.b=2\n\n")
    settings = Settings.of(
        sluice_home=tmp_path, spark_properties_file=str(more), spark_packages="g:a:1,/x.jar", warehouse="s3://lake/x",
        aws_endpoint_url_s3="http://127.0.0.1:7070",
    )  # fmt: skip
    configuration = properties(settings.spark_jobs, spark_job(tmp_path))
    assert (configuration["spark.a"], configuration["spark.b"]) == ("1", "2")
    assert configuration["spark.jars.packages"] == "g:a:1" and configuration["spark.jars"].endswith("/x.jar")
    assert configuration["spark.sql.catalog.nessie.io-impl"].endswith("ResolvingFileIO")
    assert configuration["spark.sql.catalog.nessie.s3.endpoint"] == "http://127.0.0.1:7070"


def test_s3_without_its_jars(tmp_path: Path) -> None:
    settings = Settings.of(sluice_home=tmp_path)
    require_s3(settings.storage, settings.storage.lake, "/in/s3.csv")
    with pytest.raises(BadEnvironment, match=r"s3a://b/x is on S3, .* install them with `make s3`"):
        require_s3(settings.storage, settings.storage.lake, "s3a://b/x")


def test_configuration_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = command(Settings.of(sluice_home=tmp_path).spark_jobs, spark_job(tmp_path, args=["a b"]))
    assert words[-2:] == ["job.py", "a b"]
    assert (tmp_path / "spark.properties").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("SLACK_TOKEN", "xoxb-1")
    assert "xoxb-1" not in environment(Settings().spark_jobs, tmp_path).values()


def test_output_is_split_into_progress_and_lines() -> None:
    reader = OutputReader()
    assert reader.feed(b"sluice: writing t.x\n[Stage 3:===>      (2 + 1) / 8]\r") == ["sluice: writing t.x"]
    assert reader.progress.text == "writing t.x: stage 3, 2 of 8 tasks"
    assert reader.feed(b"a half ") == []
    assert reader.feed("line é\n".encode()) == ["a half line é"]
    assert reader.feed(b"no end") == [] and reader.close() == ["no end"]
    assert list(reader.tail) == ["sluice: writing t.x", "a half line é", "no end"]


@pytest.mark.parametrize(
    ("tail", "kind", "words"),
    [
        (["x", "pyspark.errors.AnalysisException: [NO_TABLE] gone", "'Project *"], InvalidInput, "[NO_TABLE] gone"),
        (["ModuleNotFoundError: No module named 'x'"], InvalidInput, "No module named"),
        (["java.lang.OutOfMemoryError: Java heap space", "at x"], JobFailed, "heap space"),
        ([], JobFailed, "exit code 137"),
    ],
)
def test_the_error_of_a_failed_job(tail: list[str], kind: type[Exception], words: str) -> None:
    error = job_failure(JobResult(137, tail, Path("write.log")))
    assert type(error) is kind and words in str(error)
    assert str(error).endswith("; the whole log: write.log")


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/home/ana/prices.py", line 40, in <module>',
    "    main()",
    '  File "/home/ana/prices.py", line 12, in main',
    '    spark.table("t.x").count()',
    '  File "/lib/pyspark/sql/classic/dataframe.py", line 450, in count',
]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ["pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] there is no t.x"],
            "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] there is no t.x",
        ),
        (
            [
                "py4j.protocol.Py4JJavaError: An error occurred while calling o63.count.",
                ": org.apache.spark.SparkException: Job aborted due to stage failure",
                "Caused by: java.lang.OutOfMemoryError: Java heap space",
            ],
            "OutOfMemoryError: Java heap space",
        ),
    ],
)
def test_the_error_of_a_program_names_its_line_and_its_log(error: list[str], message: str) -> None:
    failure = job_failure(JobResult(1, [*TRACEBACK, *error], Path("write.log")), program=Path("jobs/prices.py"))
    assert str(failure) == (
        f"the Spark job ended with exit code 1 at prices.py, line 12: {message}; the whole log: write.log"
    )


FAMILY = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
else:
    print("up", flush=True)
time.sleep(60)
"""


def _session(leader: int) -> list[int]:
    members = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                members.append(pid)
        except (ProcessLookupError, psutil.Error):
            continue
    return members


@pytest.mark.parametrize("how", ["pipe closed", "guard killed"])
def test_nothing_outlives_the_worker(how: str) -> None:
    """The whole family ends, including a child in a process group of its own."""
    family = subprocess.Popen(
        [sys.executable, guard.__file__, sys.executable, "-c", FAMILY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert family.stdin and family.stdout
    assert family.stdout.readline() == b"up\n"
    assert len(_session(family.pid)) == 3
    if how == "pipe closed":
        family.stdin.close()
        wait_for(lambda: not _session(family.pid))
    else:
        os.kill(family.pid, signal.SIGKILL)
        family.wait()
        guard.end_session(family.pid, signal.SIGKILL, 5)
        assert not _session(family.pid)
    family.wait()


async def test_supervision(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    heartbeats: list[str] = []
    script = "import sys, time; print('sluice: working', flush=True); time.sleep(1.2); print('over'); sys.exit(3)"
    ended = await run_supervised(
        [sys.executable, "-c", script], dict(os.environ), tmp_path, lambda progress: heartbeats.append(progress.text)
    )
    assert (ended.code, ended.tail) == (3, ["sluice: working", "over"])
    assert heartbeats[-1] == "working"
    assert ended.log.read_text() == "sluice: working\nover\n"
    assert not (tmp_path / "scratch").exists()


def _guards() -> set[int]:
    """Return the sessions of the guards below this process, except guards that ended and were not waited for."""
    sessions = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if guard.__file__ in process.cmdline():
                sessions.add(os.getsid(process.pid))
        except (psutil.Error, ProcessLookupError):
            continue
    return sessions


async def test_a_cancel_waits_until_all_is_over(tmp_path: Path) -> None:
    others = _guards()  # workers of other tests may keep a Spark warm
    task = asyncio.create_task(
        run_supervised([sys.executable, "-c", FAMILY], dict(os.environ), tmp_path, lambda _: None)
    )
    await until(lambda: (tmp_path / "spark.log").exists() and "up" in (tmp_path / "spark.log").read_text())
    (leader,) = _guards() - others
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _session(leader)


def test_spark_is_not_started_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=3 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    run_ref = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
    with pytest.raises(DiskFull, match="only 3 MiB free"):
        create_job_folder(Settings.of(sluice_home=tmp_path).storage, run_ref, "write")


def test_what_matters_outlasts_a_long_stack_trace() -> None:
    reader = OutputReader()
    frames = b"".join(b"\tat org.example.Deep.call(Deep.java:%d)\n" % line for line in range(200))
    reader.feed(b"x.ForbiddenException: 'UPDATE_ENTITY' is not allowed for role 'w' on reference 'main'\n" + frames)
    error = job_failure(JobResult(1, list(reader.tail), Path("log")), explain_refused_write(reader.tail))
    assert type(error) is WriteRefused and "tried to change 'main'" in str(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token=eyJhbGciOiJI.eyJzdWIiOiJ3.abc-_1 x", "token=[hidden] x"),
        ("Bearer eyJhbGciOiJI.eyJzdWIiOiJ3.abc", "Bearer [hidden]"),
        ("s3 secret_key: 'abc/def+123456' end", "s3 secret_key: '[hidden]' end"),
        ("http://ana:pass1word@host/x", "http://[hidden]@host/x"),
        ("xoxb-123456789012-abcdef", "[hidden]"),
        ("the password is wrong, the token expired", "the password is wrong, the token expired"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    reader = OutputReader()
    assert reader.feed(text.encode() + b"\n") == [shown] and list(reader.tail) == [shown]
