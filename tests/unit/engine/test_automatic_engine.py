"""The engine that chooses for each job: a session on the warm server, or a Spark of its own."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat, no_heartbeat
from engine.runner import Spark, open_engine
from engine.spark.automatic import AutomaticEngine
from engine.spark.connect import ConnectEngine
from engine.spark.engine import SubmitEngine
from sluice.errors import ServiceUnavailable, SparkServerCrashed
from sluice.settings import Settings
from tests.harness.waiting import until

LISTENER = "spark.extraListeners io.openlineage.spark.agent.OpenLineageSparkListener\n"


@dataclass
class FakeEngine:
    """An engine that records what it is asked to do, and whose jobs wait until they may end."""

    does_start: bool = True
    crashes: bool = False
    calls: list[str] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    has_jvm = True

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        self.calls.append(f"run {job.program}")
        await self.may_end.wait()
        if self.crashes:
            raise SparkServerCrashed("the server ended")
        return JobResult(0, [], Path())

    async def ensure_server(self, heartbeat: Heartbeat) -> None:
        if not self.does_start:
            raise ServiceUnavailable("the server did not start")

    async def end_server(self) -> None:
        self.calls.append("end the server")

    async def warm_up(self) -> None:
        self.calls.append("warm up")

    async def close(self) -> None:
        self.calls.append("close")


def job(name: str = "ingest", **more: Any) -> SparkJob:
    return SparkJob(Path(name), Path(), "wap/x/r/a1", {}, **more)


def engine_of(
    warm: FakeEngine,
    cold: FakeEngine,
    *,
    programs: FakeEngine | None = None,
    idle: float = 3600,
    folder: Path = Path(),
) -> AutomaticEngine:
    properties = folder / "spark.properties"
    named = {"spark_properties_file": str(properties)} if properties.exists() else {}
    programs = programs or FakeEngine()
    for each in (warm, programs, cold):
        each.may_end.set()
    servers = (cast(ConnectEngine, warm), cast(ConnectEngine, programs))
    return AutomaticEngine(Settings.of(**named).spark_jobs, *servers, cold, idle)


async def test_built_in_jobs_share_the_warm_server_and_programs_do_not() -> None:
    warm, cold = FakeEngine(), FakeEngine()
    engine = engine_of(warm, cold)
    await engine.run(job(), no_heartbeat)
    await engine.run(job("theirs.py", built_in=False), no_heartbeat)
    await engine.run(job("tuned", conf={"spark.executor.memory": "3g"}), no_heartbeat)
    assert (warm.calls, cold.calls) == (["run ingest"], ["run theirs.py", "run tuned"])
    await engine.close()
    assert warm.calls[-1] == cold.calls[-1] == "close"


async def test_programs_that_ask_for_a_session_share_a_server_without_built_in_jobs() -> None:
    warm, programs, cold = FakeEngine(), FakeEngine(), FakeEngine()
    engine = engine_of(warm, cold, programs=programs, idle=0.05)
    await engine.warm_up()
    await engine.run(job("theirs.py", built_in=False, shares_server=True, conf={"spark.sql.x": "1"}), no_heartbeat)
    await until(lambda: programs.calls == ["run theirs.py", "end the server"])
    assert "run theirs.py" not in warm.calls + cold.calls
    await engine.close()
    assert programs.calls[-1] == "close"


async def test_a_program_that_asks_for_a_session_runs_without_the_server_too() -> None:
    programs, cold = FakeEngine(does_start=False), FakeEngine()
    engine = engine_of(FakeEngine(), cold, programs=programs)
    await engine.run(job("theirs.py", built_in=False, shares_server=True), no_heartbeat)
    assert (programs.calls, cold.calls) == ([], ["run theirs.py"])


async def test_a_job_that_needs_a_jvm_or_is_to_run_apart_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = []

    async def submit(_: SubmitEngine, job: SparkJob, __: Heartbeat) -> JobResult:
        submitted.append(str(job.program))
        return JobResult(0, [], Path())

    monkeypatch.setattr(SubmitEngine, "run", submit)
    warm = FakeEngine()
    spark = Spark(Settings.of().spark_jobs, engine_of(warm, FakeEngine()))
    await spark.run(job("compact", needs_jvm=True), no_heartbeat)
    await spark.run(job("after a crash", runs_apart=True), no_heartbeat)
    assert submitted == ["compact", "after a crash"] and not warm.calls


async def test_a_server_that_does_not_start_is_not_needed(caplog: pytest.LogCaptureFixture) -> None:
    warm, cold = FakeEngine(does_start=False), FakeEngine()
    await engine_of(warm, cold).run(job(), no_heartbeat)
    assert (warm.calls, cold.calls) == ([], ["run ingest"])
    assert "the server did not start; the job runs by spark-submit" in caplog.text


async def test_a_server_that_crashes_under_a_job_fails_that_attempt() -> None:
    cold = FakeEngine()
    with pytest.raises(SparkServerCrashed):
        await engine_of(FakeEngine(crashes=True), cold).run(job(), no_heartbeat)
    assert not cold.calls, "the next attempt has a branch of its own"


async def test_an_idle_server_ends_and_one_in_use_does_not() -> None:
    warm = FakeEngine()
    engine = engine_of(warm, FakeEngine(), idle=0.2)
    warm.may_end.clear()
    slow = asyncio.create_task(engine.run(job("slow"), no_heartbeat))
    await until(lambda: warm.calls)
    quick = asyncio.create_task(engine.run(job("quick"), no_heartbeat))
    await asyncio.sleep(0.5)
    assert warm.calls == ["run slow", "run quick"]
    warm.may_end.set()
    await asyncio.gather(slow, quick)
    await until(lambda: warm.calls[-1] == "end the server")
    await engine.run(job("again"), no_heartbeat)
    assert warm.calls == ["run slow", "run quick", "end the server", "run again"]
    await engine.close()
    await asyncio.sleep(0.4)
    assert warm.calls[-1] == "close", "nothing ends the server a second time"


async def test_a_server_that_nobody_used_ends_too() -> None:
    warm = FakeEngine()
    engine = engine_of(warm, FakeEngine(), idle=0.05)
    await engine.warm_up()
    await until(lambda: warm.calls == ["warm up", "end the server"])


async def test_with_the_listener_of_openlineage_each_job_is_an_application(tmp_path: Path) -> None:
    (tmp_path / "spark.properties").write_text(LISTENER)
    warm, cold = FakeEngine(), FakeEngine()
    engine = engine_of(warm, cold, folder=tmp_path)
    await engine.warm_up()
    await engine.run(job(), no_heartbeat)
    assert (warm.calls, cold.calls) == ([], ["run ingest"])


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, AutomaticEngine),
        ({"spark_engine": "connect"}, ConnectEngine),
        ({"spark_engine": "submit"}, SubmitEngine),
        ({"spark_master": "yarn"}, SubmitEngine),
        ({"spark_master": "local[4]"}, AutomaticEngine),
    ],
)
async def test_the_engine_that_settings_name(settings: dict[str, str], kind: type, tmp_path: Path) -> None:
    opened = open_engine(Settings.of(sluice_home=tmp_path, **settings).spark_jobs, {})
    assert type(opened) is kind
    await opened.close()
