"""Jobs in sessions on a warm Spark Connect server: the same jobs and the same endings as by spark-submit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import BYPASS, csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

ROWS: list[dict[str, Any]] = [{"id": 1, "kind": "a"}, {"id": 2, "kind": None}, {"id": 2, "kind": "x"}]
_PROGRAM = """\
import atexit, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
class Hanging:
    def __del__(self):
        time.sleep(600)
sys.kept = Hanging()
atexit.register(Path("{flag}").touch)
spark = SparkSession.builder.appName("theirs").config("spark.sql.shuffle.partitions", "3").getOrCreate()
rows = spark.range(int(sys.argv[1]))
rows.writeTo("t.theirs").append() if spark.catalog.tableExists("t.theirs") else rows.writeTo("t.theirs").create()
spark.stop()
"""
"""A program that does the usual things at its end, and keeps resources that Python would wait for at its shutdown."""
_SLOW = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range({rows}).writeTo("t.{name}").create()
import time
from pathlib import Path
flag = Path("{flag}")
if not flag.exists():
    flag.touch()
    spark.sql("SELECT sum(a.id * b.id) FROM range(1000000) a CROSS JOIN range(1000000) b").collect()
"""
_QUEUE = "connect"
_OWNER = {"SPARK_OF_TESTS": _QUEUE}
"""A variable that the processes of jobs inherit."""


@pytest.fixture(scope="module")
def environment(stack: dict[str, str]) -> dict[str, str]:
    return {**stack, **_OWNER, "SLUICE_TASK_QUEUE": _QUEUE, "SPARK_ENGINE": "connect", "SLUICE_SCAN_ENGINE": "spark"}


@pytest.fixture(scope="module")
def worker(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[WorkerProcess]]:
    """The worker of these tests: the last of the list. A test that kills it starts another one."""
    workers = [WorkerProcess(environment, tmp_path_factory.mktemp("warm"))]
    yield workers
    for each in workers:
        each.stop()
    assert not servers() and not clients() and not forks()


@pytest.fixture
def warm(environment: dict[str, str], worker: list[WorkerProcess], system: SystemHarness) -> SystemHarness:
    return SystemHarness(system.folder, {**system.environment, **environment})


def servers() -> list[psutil.Process]:
    """Return the JVMs of these tests' warm servers."""
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    return _of(lambda process: server in process.cmdline() and "java" in Path(process.cmdline()[0]).name)


def clients() -> list[psutil.Process]:
    """Return the clients of those servers."""
    return _of(lambda process: process.name() == "sluice-job")


def forks() -> list[psutil.Process]:
    """Return the processes that clients are forked from."""
    return _of(lambda process: process.name() == "sluice-forks")


def _of(is_one: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """Return the processes that the worker of these tests started. Other tests have a warm Spark at the same time."""
    processes = []
    for process in psutil.process_iter():
        try:
            if is_one(process) and _OWNER.items() <= process.environ().items():
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def left() -> list[psutil.Process]:
    return [*servers(), *clients(), *forks()]


def theirs(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.py").write_text(text)
    return f"name: {name}\nwrite: {{job: {folder / f'{name}.py'}}}\ntables: [t.{name}]\n"


def test_the_built_in_job_and_its_checks(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", ROWS)
    ended = warm.run(pipeline("warm", source, "[row_count: 3, unique: {columns: [id], severity: warn}]"))
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert [check["answered_by"] for check in ended.json["checks"]] == ["metadata", "spark"]
    assert len(lake.rows("t.warm")) == 3
    second = csv_file(tmp_path / "second.csv", ROWS)
    added = warm.run(pipeline("warm", second, "[not_null: kind]"), again=True)
    assert (added.json["outcome"], added.json["checks"][0]["failed_rows"]) == ("quarantined", 1), added
    assert len(lake.rows("t.warm")) == 3


def test_a_users_program_unchanged(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    (tmp_path / "theirs.py").write_text(_PROGRAM.format(flag=flag))
    text = f"name: theirs\nwrite: {{job: {tmp_path / 'theirs.py'}, args: ['7']}}\ntables: [t.theirs]\n"
    ended = warm.run(text)
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert (len(lake.rows("t.theirs")), flag.exists()) == (7, True)
    refused = warm.run(text.replace("args:", "conf: {spark.executor.memory: 3g}, args:"), again=True)
    assert refused.code == 6 and "spark.executor.memory cannot be set for one job" in refused.json["reason"], refused


def test_a_users_modules_may_be_called_like_ours(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    package = tmp_path / "spark_jobs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ingest.py").write_text("ROWS = 4\n")
    (tmp_path / "namesake.py").write_text(
        "from pyspark.sql import SparkSession\nfrom spark_jobs.ingest import ROWS\n"
        'SparkSession.builder.getOrCreate().range(ROWS).writeTo("t.namesake").create()\n'
    )
    ended = warm.run(f"name: namesake\nwrite: {{job: {tmp_path / 'namesake.py'}}}\ntables: [t.namesake]\n")
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert len(lake.rows("t.namesake")) == 4


def test_jobs_go_on_after_what_they_are_forked_off_died(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    for dead in forks():
        dead.kill()
    ended = warm.run(pipeline("after-forks", csv_file(tmp_path / "in.csv", ROWS)))
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (0, "published", 1), ended
    (fork,) = forks()
    threads = {Path(f"/proc/{fork.pid}/task/{each.id}/comm").read_text().strip() for each in fork.threads()}
    assert threads <= {"sluice-forks", "jemalloc_bg_thd"}  # a fork does not copy threads; jemalloc restarts its own


def test_statements_carry_their_marks(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    assert warm.run(pipeline("emptied", csv_file(tmp_path / "in.csv", ROWS))).code == 0
    statements = "[DELETE FROM t.emptied, \"INSERT INTO t.emptied VALUES (9, 'z')\"]"
    ended = warm.run(f"name: emptied\nwrite: {{mode: sql, statements: {statements}}}\ntables: [t.emptied]\n")
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert [row["id"] for row in lake.rows("t.emptied")] == [9]


def test_a_stated_schema_of_parquet(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """Spark Connect refuses to add no columns."""
    pq.write_table(pa.table({"id": [1, 2], "kind": ["a", None]}), tmp_path / "in.parquet")
    source = f'{{path: "{tmp_path}/in.parquet", schema: "id BIGINT, kind STRING"}}'
    ended = warm.run(f"name: warm-stated\nwrite: {{source: {source}}}\ntables: [t.warm_stated]\n")
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert sorted(lake.rows("t.warm_stated"), key=lambda row: row["id"])[0] == {"id": 1, "kind": "a"}


def test_a_bad_value_among_many_columns_is_named(warm: SystemHarness, tmp_path: Path) -> None:
    """Spark Connect refuses an expression of too many levels."""
    values = {"TIMESTAMP": "2026-01-31 10:30:00", "INT": "7", "DOUBLE": "1.5"}
    types = {f"{type.lower()}_{number}": type for number in range(30) for type in values}
    good = [values[type] for type in types.values()]
    (tmp_path / "in.csv").write_text("".join(f"{','.join(each)}\n" for each in [types, good, [*good[:-1], "abc"]]))
    columns = ", ".join(f"{name} {type}" for name, type in types.items())
    source = f'{{path: "{tmp_path}/in.csv", schema: "{columns}"}}'
    stated = f"name: warm-many\nshow_values: true\nwrite: {{source: {source}}}\ntables: [t.warm_many]\n"
    ended = warm.run(stated)
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (6, "failed", 1), ended
    assert "in.csv, line 3: double_29: 'abc' is not a valid double; 1 such row" in ended.json["reason"]


def test_main_is_out_of_reach(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    assert warm.run(pipeline("warm-bypass", csv_file(tmp_path / "in.csv", [{"id": 1}]))).code == 0
    before = lake.head()
    ended = warm.run(theirs(tmp_path, "warm_bypass", BYPASS.format(table="warm_bypass")))
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (6, "failed", 1), ended
    assert "the job tried to change 'main', and Nessie refused it" in ended.json["reason"]
    assert lake.head() == before


def test_a_cancel_ends_what_the_session_does(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = warm.start(theirs(tmp_path, "halted", _SLOW.format(rows=5, name="halted", flag=flag)))
    wait_for(flag.exists)
    (server,) = servers()
    warm.cancel(run)
    ended = warm.wait_for_end(run)
    assert (ended.code, ended.json["outcome"], ended.json["branch"]) == (5, "cancelled", None)
    assert not clients()
    server.cpu_percent()
    wait_for(lambda: server.cpu_percent(1) < 50, lambda: "the server goes on")
    assert lake.branches("halted") == []


_POISON = """\
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().sql("SELECT java_method('java.lang.System', 'exit', 3)").collect()
"""


def test_a_job_that_crashes_the_server_does_so_once(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """The neighbour loses an attempt, which does not count. The crashing job uses up its own attempt, and ends."""
    flag = tmp_path / "flag"
    slow = theirs(tmp_path, "neighbour", _SLOW.format(rows=6, name="neighbour", flag=flag))
    neighbour = warm.start(slow.replace("write: {", "write: {attempts: 1, "))
    wait_for(flag.exists)
    poison = warm.run(theirs(tmp_path, "poison", _POISON).replace("write: {", "write: {attempts: 1, "))
    ended = warm.wait_for_end(neighbour)
    assert (ended.json["outcome"], ended.json["attempts"], ended.json["lost_attempts"]) == ("published", 2, 1), ended
    assert len(lake.rows("t.neighbour")) == 6
    assert (poison.json["outcome"], poison.json["attempts"], poison.json["lost_attempts"]) == ("failed", 2, 1), poison


def test_a_dead_worker_takes_its_server_along(
    warm: SystemHarness, lake: LakeReader, environment: dict[str, str], worker: list[WorkerProcess], tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    run = warm.start(theirs(tmp_path, "heir", _SLOW.format(rows=8, name="heir", flag=flag)))
    wait_for(flag.exists)
    worker[-1].kill()
    wait_for(lambda: not left(), lambda: f"{left()} are left")
    worker.append(WorkerProcess(environment, tmp_path))
    ended = warm.wait_for_end(run)
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (0, "published", 2), ended
    assert len(lake.rows("t.heir")) == 8


_CACHING = """\
import time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql("INSERT INTO t.cached VALUES (2)")
spark.sql("CACHE TABLE t.cached")
assert spark.table("t.cached").count() == 2
spark.sql("CREATE TEMPORARY VIEW theirs AS SELECT 1")
Path("{flag}").touch()
while not Path("{go}").exists():
    time.sleep(0.1)
"""


def test_what_one_run_caches_is_out_of_anothers_reach(warm: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """A run reads its own branch, although another run cached the same table of another branch on the same server."""
    flag, go = tmp_path / "flag", tmp_path / "go"
    assert warm.run(pipeline("cached", csv_file(tmp_path / "one.csv", [{"id": 1}]))).code == 0
    caching = theirs(tmp_path, "caching", _CACHING.format(flag=flag, go=go)).replace("t.caching", "t.cached")
    run = warm.start(caching)
    try:
        wait_for(flag.exists)
        source = csv_file(tmp_path / "three.csv", [{"id": 3}])
        checks = "[{row_count: {max: 2}}, {sql: SELECT * FROM t.cached WHERE id = 2}]"
        ended = warm.run(pipeline("cached", source, checks))
    finally:
        go.touch()
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    warm.wait_for_end(run)
