"""The surroundings of a user's job: an environment without secrets, and nothing of another run's session."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.job_environment import job_environment
from tests.harness.lake import LakeReader
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

_MARK = "hunter2"
SECRETS = {
    name: f"{_MARK}-{name}"
    for name in (
        *("SLACK_TOKEN", "SLACK_WEBHOOK", "GITHUB_TOKEN", "OPENAI_API_KEY", "AZURE_CLIENT_SECRET", "PGPASSWORD"),
        *("TEMPORAL_WORKER_NOTES", "SLUICE_NOTES", "SPARK_RPC_SECRET", "HADOOP_CREDSTORE_PASSWORD", "VAULT_TOKEN"),
        *("PYTHON_KEYRING_PASSWORD", "DATABASE_URL", "GOOGLE_APPLICATION_CREDENTIALS", "MY_COMPANY_THING"),
    )
}
_SHOW = """\
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
@udf("string")
def inside(_):
    import json, os
    return json.dumps(dict(os.environ))
seen = {"job": dict(os.environ), "python worker": json.loads(spark.range(1).select(inside("id")).first()[0])}
for process in ("self", os.getppid()):  # the job, and its guard or launcher
    raw = Path(f"/proc/{process}/environ")
    if raw.exists():
        try:
            text = raw.read_bytes().decode()
        except PermissionError:
            continue
        seen[f"/proc/{process}/environ"] = dict(line.split("=", 1) for line in text.split("\\0") if "=" in line)
if hasattr(spark, "_jvm"):
    try:
        seen["jvm"] = dict(spark._jvm.java.lang.System.getenv())
    except Exception:
        pass
links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
files = [os.readlink(link) for link in links if os.path.islink(link)]
Path(sys.argv[1]).write_text(json.dumps({"seen": seen, "files": files}))
spark.range(1).writeTo(sys.argv[2]).create()
"""
_LEAVE = """\
import os, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

folder = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
spark.range(3).createOrReplaceTempView("left_view")
spark.range(3).createGlobalTempView("left_view")
spark.conf.set("sluice.left", "here")
spark.read.csv(str(folder / "data")).cache().count()
@udf("string")
def leave(_):
    import os
    os.environ["LEFT"] = "here"
    return "x"
spark.range(8).select(leave("id")).collect()
(folder / "left").touch()
while not (folder / "looked").exists():
    time.sleep(0.1)
spark.range(1).writeTo("t.leaving").create()
"""
_LOOK = """\
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

folder = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
def sees(action):
    try:
        action()
    except Exception:
        return False
    return True
shared = spark.conf.get("spark.sql.globalTempDatabase")
@udf("string")
def look(_):
    import os
    return os.environ.get("LEFT", "")
seen = {
    "view": sees(lambda: spark.table("left_view").collect()),
    "global view": sees(lambda: spark.table("global_temp.left_view").collect()),
    "global view by its name": sees(lambda: spark.table(f"{shared}.left_view").collect()),
    "setting": spark.conf.get("sluice.left", "") == "here",
    "rows": spark.read.csv(str(folder / "data")).count(),
    "python worker": any(row[0] for row in spark.range(8).select(look("id")).collect()),
}
(folder / "seen").write_text(json.dumps(seen))
spark.range(1).writeTo("t.looking").create()
(folder / "looked").touch()
"""


@pytest.fixture(scope="module", params=["submit", "connect"])
def engine(
    request: pytest.FixtureRequest, stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str]]]:
    """A worker of each engine, whose environment is full of secrets."""
    name = str(request.param)
    variables = {**stack, "SLUICE_TASK_QUEUE": f"isolation-{name}", "SPARK_ENGINE": name, "SPARK_SLOTS": "2"}
    given = {"SLACK_API_URL": "http://127.0.0.1:9/", "SLUICE_JOB_ENVIRONMENT": "MY_REGION", "MY_REGION": "eu"}
    secret = {**variables, **SECRETS, **given}
    worker = WorkerProcess(secret, tmp_path_factory.mktemp(name), ["env"])  # /proc shows each program's own environment
    yield name, variables
    worker.stop()


def test_a_job_inherits_no_secret(
    engine: tuple[str, dict[str, str]], system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    name, variables = engine
    harness = SystemHarness(tmp_path, {**system.environment, **variables})
    (tmp_path / "show.py").write_text(_SHOW)
    args = f"args: ['{tmp_path / 'seen.json'}', t.shown_{name}], environment: {{MODE: full}}"
    ended = harness.run(
        f"name: shown-{name}\nwrite: {{job: {tmp_path / 'show.py'}, {args}}}\ntables: [t.shown_{name}]\n"
    )
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert {"job", "python worker", "/proc/self/environ"} <= seen["seen"].keys()
    for where, listed in seen["seen"].items():
        assert _MARK not in json.dumps(listed), where
        assert listed["MY_REGION"] == "eu", where
        # whether the variables of an object store pass depends on the jars for S3, which the checkout may have
        allowed = job_environment(listed, ["MY_REGION", "MODE"], with_s3=True)
        # Spark and the libraries add variables for themselves:
        of_spark = {
            each
            for each in listed
            if each.startswith(("_", "PYTHON", "PYSPARK_", "SPARK", "SHLVL", "PWD", "OLDPWD", "KMP"))
        }
        assert listed.keys() - allowed.keys() <= of_spark | {
            "GLOG_minloglevel",
            "IS_SUBPROCESS",
            "MASTER",
            "PARENT_PID",
        }, where
    assert seen["seen"]["job"]["MODE"] == "full"
    home = variables["SLUICE_HOME"]
    assert not [
        file for file in seen["files"] if file.startswith(home) and "/runs/" not in file and "clients" not in file
    ]


def test_a_run_finds_nothing_of_another_on_the_warm_server(
    engine: tuple[str, dict[str, str]], system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    """While one run's session is open, another run looks for its views, settings, cached rows and Python workers."""
    name, variables = engine
    if name != "connect":
        pytest.skip("an application of its own shares nothing")
    harness = SystemHarness(tmp_path, {**system.environment, **variables})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1\n2\n")
    for program, text in (("leaving", _LEAVE), ("looking", _LOOK)):
        (tmp_path / f"{program}.py").write_text(text)
    leaving = harness.start(_pipeline(tmp_path, "leaving"))
    wait_for((tmp_path / "left").exists)
    (tmp_path / "data" / "a.csv").write_text("1\n2\n3\n")
    looked = harness.run(_pipeline(tmp_path, "looking"))
    assert (looked.code, looked.json["outcome"]) == (0, "published"), looked
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen.pop("rows") == 3, "the other run's cached rows were read"
    assert not any(seen.values()), seen
    assert harness.wait_for_end(leaving).json["outcome"] == "published"


def _pipeline(folder: Path, name: str) -> str:
    return f"name: {name}\nwrite: {{job: {folder / f'{name}.py'}, args: ['{folder}']}}\ntables: [t.{name}]\n"
