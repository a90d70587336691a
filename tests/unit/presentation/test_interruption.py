"""Ctrl-C: the message of a command depends on the step that it was about to take."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.exit_codes import DETACHED
from cli.program import program
from cli.run import follow
from cli.run.follow import start_and_follow
from runtime.run.start_run import StartOptions
from sluice.pipeline.file import parse_pipeline
from tests.harness.lake_client import polled_by, reach

PIPELINE = parse_pipeline("name: p\nwrite: {job: j.py}\ntables: {n.a: {}}\n", "p.yml")


async def _interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    reach(monkeypatch, SimpleNamespace(namespace="default"))


def interrupted(command: Any, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(typer.Exit) as left:
        run_command(command, False, no_preparation)
    assert left.value.exit_code == DETACHED
    return capsys.readouterr().err


def test_a_question_that_is_interrupted_leaves_nothing_running(capsys: pytest.CaptureFixture[str]) -> None:
    async def ask(_: CommandContext, __: None) -> int:
        await asyncio.sleep(0)
        return int(await _interrupt())

    message = interrupted(ask, capsys)
    assert message == "Interrupted; nothing was changed.\n"


@pytest.mark.parametrize(
    ("step", "message"), [("start_run", "may have been started"), ("watch_run", "the run goes on")]
)
def test_a_run_that_is_followed_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], step: str, message: str
) -> None:
    async def started(*_: Any) -> Any:
        handle = SimpleNamespace(id="w", run_id="r", first_execution_run_id="r")
        return SimpleNamespace(handle=handle, attached=False)

    monkeypatch.setattr(follow, "start_run", started)
    monkeypatch.setattr(follow, "find_run", lambda *_: asyncio.sleep(0, SimpleNamespace(handle=None)))
    monkeypatch.setattr(follow, step, _interrupt)

    async def run(given: CommandContext, _: None) -> int:
        return await start_and_follow(given, PIPELINE, None, StartOptions(), detach=False)

    assert message in interrupted(run, capsys)


@pytest.mark.parametrize("workers", [("1@host",), ()])
def test_a_detached_run_names_the_next_commands_and_a_missing_worker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], workers: tuple[str, ...]
) -> None:
    async def started(*_: Any) -> Any:
        handle = SimpleNamespace(id="w", run_id="r", first_execution_run_id="r")
        return SimpleNamespace(handle=handle, attached=False)

    reach(monkeypatch, SimpleNamespace(namespace="default", workflow_service=polled_by(*workers)))
    monkeypatch.setattr(follow, "start_run", started)
    monkeypatch.setattr(follow, "_ask_guarantee", lambda *_: asyncio.sleep(0, ""))

    async def run(given: CommandContext, _: None) -> int:
        return await start_and_follow(given, PIPELINE, None, StartOptions(), detach=True)

    with pytest.raises(typer.Exit) as left:
        run_command(run, False, no_preparation)
    printed = capsys.readouterr()
    assert left.value.exit_code == 0
    assert f"{program()} watch w " in printed.out
    assert f"{program()} status w " in printed.out
    missing = "hint: w waits: no worker takes work from the task queue 'sluice'; start one with `make up`"
    assert (missing in printed.err) == (not workers)
