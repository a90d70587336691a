"""Temporal's time-skipping server, which fires a timer at once while a test waits for a result."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

from temporalio.api.testservice.v1 import LockTimeSkippingRequest, UnlockTimeSkippingRequest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, TestService
from temporalio.testing import WorkflowEnvironment

from engine.spark.java import find_java
from tests.harness.waiting import LIMIT

_STUCK, _FREED = 60.0, 0.5
"""Seconds to wait for a result before the time is unlocked, which is longer than any activity of a test, and seconds
until it is locked again."""


@asynccontextmanager
async def start_time_skipping(home: Path, folder: Path) -> AsyncIterator[WorkflowEnvironment]:
    """Start Temporal's time-skipping server, from the jars of the set-up."""
    wrapper = folder / "test-server"
    java, jars = find_java() / "bin" / "java", home / "jars" / "timeskip" / "*"
    wrapper.write_text(f'#!/bin/sh\nexec "{java}" -cp "{jars}" io.temporal.testserver.TestServer "$@"\n')
    wrapper.chmod(0o755)
    environment = await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter,
        test_server_existing_path=str(wrapper),
        test_server_startup_timeout=timedelta(seconds=LIMIT),  # by default 5 s, which Java alone may need
    )
    async with environment:
        free_stuck_time(environment)
        yield environment


def free_stuck_time(environment: WorkflowEnvironment) -> None:
    """Make the server skip time again if it has stopped while a test awaits a result.

    In rare cases, the server keeps a lock on the time after all activities have ended, so that a timer of a day lasts a
    day. One more unlock, which is taken back after a moment, fixes that.
    """
    unlocked = environment.time_skipping_unlocked  # type: ignore[attr-defined]  # of the environment that skips time

    @asynccontextmanager
    async def unlocked_again() -> AsyncIterator[None]:
        async with unlocked():
            ended = asyncio.Event()
            freeing = asyncio.create_task(_free(environment.client.test_service, ended))
            try:
                yield
            finally:
                ended.set()
                await freeing

    environment.time_skipping_unlocked = unlocked_again  # type: ignore[attr-defined]


async def _free(service: TestService, ended: asyncio.Event) -> None:
    """Unlock the time for a moment once a minute until `ended` is set.

    Each unlock must be followed by a lock: with one lock too few, the server skips time while activities run, and each
    activity of later tests times out at once. A cancelled unlock may have reached the server, so none is cancelled.
    """
    while not ended.is_set():
        with suppress(TimeoutError, asyncio.TimeoutError):  # two classes in Python 3.10
            await asyncio.wait_for(ended.wait(), _STUCK)
            return
        with suppress(RPCError):  # the server refuses an unlock if nothing is locked
            await service.unlock_time_skipping(UnlockTimeSkippingRequest())
            await asyncio.sleep(_FREED)
            await service.lock_time_skipping(LockTimeSkippingRequest())
