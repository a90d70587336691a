"""Slots for Spark jobs: limited, and shared fairly by pipelines."""

import asyncio
from collections.abc import Awaitable

from engine.process.heartbeat import no_heartbeat
from engine.slots import SparkSlots


async def held(slots: SparkSlots, pipeline: str, order: list[str], release: Awaitable[object]) -> None:
    async with slots.slot(no_heartbeat, pipeline):
        order.append(pipeline)
        await release


async def test_slots_are_given_to_pipelines_round_robin() -> None:
    slots, order = SparkSlots(1), list[str]()
    first = asyncio.Event()
    holding = asyncio.create_task(held(slots, "many", order, first.wait()))
    await asyncio.sleep(0)
    waiting = [
        asyncio.create_task(held(slots, name, order, asyncio.sleep(0))) for name in ["many"] * 3 + ["one", "two"]
    ]
    await asyncio.sleep(0.01)
    assert order == ["many"]
    first.set()
    await asyncio.gather(holding, *waiting)
    assert order == ["many", "many", "one", "two", "many", "many"]


async def test_no_more_jobs_run_than_there_are_slots() -> None:
    slots, order, release = SparkSlots(2), list[str](), asyncio.Event()
    jobs = [asyncio.create_task(held(slots, f"p{number}", order, release.wait())) for number in range(5)]
    await asyncio.sleep(0.01)
    assert len(order) == 2
    release.set()
    await asyncio.gather(*jobs)
    assert len(order) == 5


async def test_a_job_that_is_cancelled_leaves_the_queue() -> None:
    slots, order, release = SparkSlots(1), list[str](), asyncio.Event()
    holding = asyncio.create_task(held(slots, "a", order, release.wait()))
    await asyncio.sleep(0)
    leaving = asyncio.create_task(held(slots, "b", order, asyncio.Future()))
    staying = asyncio.create_task(held(slots, "c", order, asyncio.sleep(0)))
    await asyncio.sleep(0.01)
    leaving.cancel()
    await asyncio.wait([leaving])
    release.set()
    await asyncio.gather(holding, staying)
    assert order == ["a", "c"]
    async with slots.slot(no_heartbeat, "d"):
        assert order == ["a", "c"]
