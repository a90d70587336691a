"""A short workflow that a person waits for: abandoned without a worker, and ended when its command is interrupted."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from runtime.short_workflow import execute_short_workflow
from sluice.contracts.lake_query import SentLakeQuery
from sluice.contracts.quarantine_queries import ListQuarantineInput
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings

RUNNING, COMPLETED, TERMINATED = (
    WorkflowExecutionStatus.RUNNING,
    WorkflowExecutionStatus.COMPLETED,
    WorkflowExecutionStatus.TERMINATED,
)
REQUEST = SentLakeQuery(query=ListQuarantineInput())


class FakeHandle:
    """A workflow whose successive descriptions are given."""

    id = "discard-quarantine-1"

    def __init__(self, *descriptions: tuple[WorkflowExecutionStatus, int]) -> None:
        self._descriptions: Sequence[tuple[WorkflowExecutionStatus, int]] = descriptions
        self._ended = asyncio.Event()
        self.terminated = ""

    async def result(self) -> str:
        await self._ended.wait()
        return "the result"

    async def describe(self) -> SimpleNamespace:
        (status, length), *self._descriptions = self._descriptions
        return SimpleNamespace(status=status, history_length=length)

    async def terminate(self, reason: str) -> None:
        self.terminated = reason
        if self._descriptions and self._descriptions[0][0] is COMPLETED:
            self._ended.set()
            raise RPCError("workflow execution already completed", RPCStatusCode.NOT_FOUND, b"")


async def execute(handle: FakeHandle, *, read_only: bool = False, wait: float = 0.01) -> Any:
    async def start_workflow(*_: Any, **__: Any) -> FakeHandle:
        return handle

    client = cast(Client, SimpleNamespace(start_workflow=start_workflow))
    settings = Settings.of(sluice_worker_wait=wait).installation
    return await execute_short_workflow(client, settings, None, REQUEST, "discard", read_only=read_only)


async def test_a_workflow_that_no_worker_took_is_terminated() -> None:
    handle = FakeHandle((RUNNING, 2), (TERMINATED, 3))
    with pytest.raises(ServiceUnavailable, match="no worker takes work from the task queue 'sluice'"):
        await execute(handle)
    assert handle.terminated == "no worker took it"


async def test_a_worker_that_took_it_just_before_makes_the_outcome_unknown() -> None:
    with pytest.raises(ServiceUnavailable, match=r"outcome is not known.*discard-quarantine-1.*`quarantine list`"):
        await execute(FakeHandle((RUNNING, 2), (TERMINATED, 8)))
    with pytest.raises(ServiceUnavailable, match="run the command again"):
        await execute(FakeHandle((RUNNING, 2), (TERMINATED, 8)), read_only=True)


async def test_a_workflow_that_ended_just_before_has_its_result() -> None:
    assert await execute(FakeHandle((RUNNING, 2), (COMPLETED, 11))) == "the result"


@pytest.mark.parametrize(("read_only", "reason"), [(True, "the command was interrupted"), (False, "")])
async def test_an_interrupted_command_ends_its_query_and_nothing_else(read_only: bool, reason: str) -> None:
    handle = FakeHandle()
    waiting = asyncio.create_task(execute(handle, read_only=read_only))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert handle.terminated == reason
