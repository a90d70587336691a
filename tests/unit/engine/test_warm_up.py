"""A job that warms up a Spark Connect server stops for the first real job."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat, no_heartbeat
from engine.spark.automatic import AutomaticEngine
from engine.spark.connect import ConnectEngine
from engine.spark.connect_server import ExternalConnectServer
from engine.spark.engine import SubmitEngine
from engine.spark.submit import WARM_UP
from sluice.settings import Settings
from tests.harness.waiting import until


class Server(ExternalConnectServer):
    """A server of the worker's own, whose start waits for the test. Its earlier callers wait a little longer."""

    is_own = True

    def __init__(self) -> None:
        super().__init__("sc://localhost:1")
        self.may_start = asyncio.Event()
        self._callers = 0

    async def ensure_running(self, heartbeat: Heartbeat) -> str:
        self._callers += 1
        steps = 100 // self._callers
        await self.may_start.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        return "sc://localhost:1"

    async def is_reachable(self) -> bool:
        return True


class Clients:
    """A fork server whose clients record their programs. The warm-up job never ends by itself."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    async def ensure_running(self, variables: Mapping[str, str]) -> None:
        pass

    async def close(self) -> None:
        pass

    async def start_job(self, specification: str, variables: Mapping[str, str]) -> "Client":
        return Client(json.loads(specification), self.events)


class Client:
    def __init__(self, specification: Mapping[str, str], events: list[str]) -> None:
        self.name = Path(specification["program"]).name or f"release {specification['session']}"
        self.session, self.events = specification["session"], events
        events.append(self.name)
        self._released = Path(specification["released_file"])

    async def watch(self, log: Path, heartbeat: Heartbeat) -> JobResult:
        try:
            await asyncio.sleep(3600 if self.name == WARM_UP.name else 0)
        except asyncio.CancelledError:
            self.events.append(f"stopped {self.session}")
            raise
        self._released.parent.mkdir(parents=True, exist_ok=True)
        self._released.touch()
        return JobResult(0, [], log)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def engine(server: Server, events: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConnectEngine:
    monkeypatch.setattr("engine.spark.connect.LocalConnectServer", lambda *_, **__: server)
    monkeypatch.setattr("engine.spark.connect.ForkServer", lambda *_: Clients(events))
    monkeypatch.setattr("engine.spark.connect.find_java", lambda: tmp_path)
    return ConnectEngine(Settings.of(sluice_home=tmp_path).spark_jobs, {})


async def run(engine: ConnectEngine | AutomaticEngine, folder: Path) -> None:
    job = SparkJob(Path("job.py"), folder / "job", "wap/x/r/a1", {}, run_id="r", attempt=1)
    assert (await engine.run(job, no_heartbeat)).code == 0


async def test_a_job_stops_the_warm_up_job_and_its_session_is_released(
    engine: ConnectEngine, server: Server, events: list[str], tmp_path: Path
) -> None:
    server.may_start.set()
    warming_up = asyncio.create_task(engine.warm_up())
    await until(lambda: events == [WARM_UP.name])
    await run(engine, tmp_path)
    await warming_up
    (session,) = [event.split()[1] for event in events if event.startswith("stopped")]
    assert sorted(events) == sorted([WARM_UP.name, "job.py", f"stopped {session}", f"release {session}"])


@pytest.mark.parametrize("is_automatic", [False, True])
async def test_no_warm_up_job_begins_after_a_job(
    engine: ConnectEngine, server: Server, events: list[str], tmp_path: Path, is_automatic: bool
) -> None:
    settings = Settings.of(sluice_home=tmp_path).spark_jobs
    chosen = AutomaticEngine(settings, engine, engine, SubmitEngine(settings)) if is_automatic else engine
    warming_up, job = asyncio.create_task(chosen.warm_up()), asyncio.create_task(run(chosen, tmp_path))
    await asyncio.sleep(0.1)  # both wait for the server
    server.may_start.set()
    await asyncio.gather(warming_up, job)
    assert events == ["job.py"]
    await chosen.close()


async def test_a_worker_that_ends_stops_the_warm_up_job(
    engine: ConnectEngine, server: Server, events: list[str]
) -> None:
    server.may_start.set()
    warming_up = asyncio.create_task(engine.warm_up())
    await until(lambda: events == [WARM_UP.name])
    warming_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await warming_up
    assert [event.split()[0] for event in events] == [WARM_UP.name, "stopped"]
