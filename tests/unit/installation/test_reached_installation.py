"""A command connects to the stack of its folder, or to the Temporal that a person chose, and to nothing else."""

import asyncio
import json
import os
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.taskqueue.v1 import PollerInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from runtime.installation import reached_installation
from runtime.installation.identity import FILE
from runtime.installation.reached_installation import (
    ReachedTemporal,
    check_task_queue,
    connect_command,
    polling_workers,
    worker_identity,
)
from sluice.environment_files import STACK_FILE, read_environment
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.settings import Settings
from tests.harness.command_line import run_command

OWN, OTHER, USUAL = "own-1", "other-2", "127.0.0.1:7233"


class Temporal:
    """A Temporal server with these identities of polling workers, and these schedules."""

    def __init__(self, *identities: str, schedules: tuple[str, ...] = (), answers: bool = True) -> None:
        self.identities, self.schedules, self.answers = identities, schedules, answers
        self.workflow_service = self
        self.service_client = SimpleNamespace(config=SimpleNamespace(target_host=USUAL))
        self.namespace = "default"
        self.polled_before = timedelta()
        """Time since the last poll."""

    async def connect(self, environment: Mapping[str, str]) -> "Temporal":
        if not self.answers:
            raise ServiceUnavailable("Temporal does not answer")
        return self

    async def describe_task_queue(self, _: Any) -> Any:
        polled_at = Timestamp()
        polled_at.FromDatetime(datetime.now(timezone.utc) - self.polled_before)
        return DescribeTaskQueueResponse(
            pollers=[PollerInfo(identity=each, last_access_time=polled_at) for each in self.identities]
        )

    def get_schedule_handle(self, name: str) -> Any:
        async def describe() -> None:
            if name not in self.schedules:
                raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")

        return SimpleNamespace(describe=describe)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an id, whose stack is down."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # no configuration file of Temporal
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / FILE).write_text(f"{OWN}\n")
    return tmp_path / "home"


def start_stack(home: Path) -> None:
    (home / STACK_FILE).write_text(json.dumps({"environment": {"TEMPORAL_ADDRESS": USUAL}}))


async def reach(monkeypatch: pytest.MonkeyPatch, temporal: Temporal) -> str:
    """Connect as a command does; return the hint."""
    return (await connected(monkeypatch, temporal)).hint


async def connected(monkeypatch: pytest.MonkeyPatch, temporal: Temporal, *, read_only: bool = True) -> ReachedTemporal:
    """Connect as a command does; return what it reaches."""
    monkeypatch.setattr(reached_installation, "connect", temporal.connect)
    return await connect_command(read_environment(), read_only=read_only)


async def test_a_stack_that_is_down_is_said_to_be_down(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServiceUnavailable, match=r"the stack of this folder is down: `make up`.*TEMPORAL_ADDRESS"):
        await reach(monkeypatch, Temporal(answers=False))


@pytest.mark.parametrize(
    ("temporal", "who"),
    [
        (Temporal(f"1@host#{OTHER}"), f"At {USUAL} listens the stack of installation {OTHER}"),
        (Temporal("1@host", schedules=(f"sluice-reaper-{OTHER}",)), "a Temporal server that this folder does not know"),
        (Temporal(), "a Temporal server that this folder does not know"),
    ],
)
async def test_another_stack_on_the_usual_port_is_not_talked_to(
    home: Path, monkeypatch: pytest.MonkeyPatch, temporal: Temporal, who: str
) -> None:
    with pytest.raises(ServiceUnavailable, match=f"is down: `make up` starts it.*{who}"):
        await reach(monkeypatch, temporal)
    start_stack(home)  # the stack's file remains, as after a reboot
    with pytest.raises(ServiceUnavailable, match=f"listens at {USUAL}: run `make down`, then `make up`"):
        await reach(monkeypatch, temporal)
    (home / FILE).unlink()
    with pytest.raises(ServiceUnavailable, match="the stack of this folder is down"):
        await reach(monkeypatch, temporal)


@pytest.mark.parametrize(
    "temporal",
    [
        Temporal(f"1@host#{OWN}"),
        Temporal(f"1@host#{OTHER}", f"1@host#{OWN}"),
        Temporal("1@host", schedules=(f"sluice-reaper-{OWN}",)),
        Temporal(schedules=(f"sluice-reaper-{OWN}",)),
    ],
)
async def test_its_own_installation_is_reached_without_a_word(
    home: Path, monkeypatch: pytest.MonkeyPatch, temporal: Temporal
) -> None:
    assert not await reach(monkeypatch, temporal), "a Temporal and a worker that somebody started by hand"
    start_stack(home)
    assert not await reach(monkeypatch, temporal)


async def test_a_stack_without_a_reaper_is_known_by_its_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_REAP_EVERY", "0")
    with pytest.raises(ServiceUnavailable):
        await reach(monkeypatch, Temporal())
    start_stack(home)
    assert not await reach(monkeypatch, Temporal())


@pytest.mark.parametrize("where", ["variable", "dotenv", "profile"])
async def test_who_sets_an_address_chose_it(home: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    if where == "variable":
        monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
    elif where == "dotenv":
        Path(".env").write_text("TEMPORAL_ADDRESS=temporal.example:7233\n")
    else:
        Path("temporal.toml").write_text('[profile.default]\naddress = "temporal.example:7233"\n')
        monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(Path("temporal.toml").absolute()))
    assert not await reach(monkeypatch, Temporal())
    assert not await reach(monkeypatch, Temporal("1@host"))
    hint = await reach(monkeypatch, Temporal(f"1@host#{OTHER}"))
    assert hint == f"the workers at {USUAL} are of installation {OTHER}, not of this folder's {OWN}"
    refusal = (
        f"of installation {OTHER}, and that of this folder is {OWN}: nothing was done. Set SLUICE_INSTALLATION={OTHER}"
    )
    with pytest.raises(BadEnvironment, match=refusal):
        await connected(monkeypatch, Temporal(f"1@host#{OTHER}"), read_only=False)
    (home / FILE).unlink()
    assert not await reach(monkeypatch, Temporal(f"1@host#{OTHER}")), "a machine without a worker has no id"
    monkeypatch.setenv("SLUICE_INSTALLATION", OTHER)
    assert not (await connected(monkeypatch, Temporal(f"1@host#{OTHER}"), read_only=False)).hint
    monkeypatch.setenv("SLUICE_INSTALLATION", "third")
    with pytest.raises(BadEnvironment, match=f"are of installation {OTHER}, and SLUICE_INSTALLATION is third: nothing"):
        await reach(monkeypatch, Temporal(f"1@host#{OTHER}"))
    assert not await reach(monkeypatch, Temporal()), "no worker runs yet"


async def test_a_worker_takes_no_work_of_another_stack(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = Temporal(f"1@host#{OTHER}", f"1@host#{OWN}")
    settings = Settings.of(sluice_installation=OWN, sluice_home=home)
    with pytest.raises(BadEnvironment, match=rf"installation {OTHER} take work from the task queue 'sluice'.*make up"):
        await check_task_queue(client, settings.installation, read_environment())
    own: Any = Temporal(f"1@host#{OWN}", "1@host")
    assert not await check_task_queue(own, settings.installation, read_environment())
    monkeypatch.setenv("TEMPORAL_ADDRESS", USUAL)
    assert OTHER in await check_task_queue(client, settings.installation, read_environment())


def test_a_worker_names_its_installation() -> None:
    assert worker_identity(OWN).startswith(f"{os.getpid()}@") and worker_identity(OWN).endswith(f"#{OWN}")
    assert "#" not in worker_identity("")


def test_a_command_in_a_folder_whose_stack_is_down(home: Path, tmp_path: Path) -> None:
    """The test does not depend on the usual port of this machine."""
    ended = run_command(tmp_path, os.environ, "list", "--json")
    assert (ended.code, ended.json["exit_code"]) == (7, 7)
    assert "the stack of this folder is down: `make up`" in ended.err


@pytest.mark.parametrize(
    ("served", "installation"),
    [((OWN,), OWN), ((OTHER, OWN), OWN), ((OTHER,), OTHER), ((), OWN), ((OTHER, "third"), OWN)],
)
async def test_a_command_has_the_installation_that_it_reaches(
    home: Path, monkeypatch: pytest.MonkeyPatch, served: tuple[str, ...], installation: str
) -> None:
    """No person sets the id, but landing zones, schedules and backfills are found by it."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
    temporal = Temporal(*(f"1@host#{each}" for each in served))
    assert (await connected(monkeypatch, temporal)).installation == installation


def test_a_worker_that_stopped_polling_is_not_counted() -> None:
    temporal = Temporal("1@host")
    temporal.polled_before = timedelta(minutes=2)
    assert asyncio.run(polling_workers(cast(Client, temporal), "sluice")) == {"1@host"}
    assert asyncio.run(polling_workers(cast(Client, temporal), "sluice", timedelta(seconds=90))) == set()
