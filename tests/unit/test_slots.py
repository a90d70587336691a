"""Room for Spark jobs: bounded, and shared fairly by pipelines."""

import asyncio
from collections.abc import Awaitable

from engine.slots import SparkSlots
from sluice.contracts.progress import Progress


def no_beat(_: Progress) -> None:
    return


async def held(slots: SparkSlots, pipeline: str, order: list[str], release: Awaitable[object]) -> None:
    async with slots.slot(no_beat, pipeline):
        order.append(pipeline)
        await release


async def test_pipelines_take_turns_however_many_jobs_each_has() -> None:
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


async def test_no_more_than_there_is_room_for() -> None:
    slots, order, release = SparkSlots(2), list[str](), asyncio.Event()
    jobs = [asyncio.create_task(held(slots, f"p{number}", order, release.wait())) for number in range(5)]
    await asyncio.sleep(0.01)
    assert len(order) == 2
    release.set()
    await asyncio.gather(*jobs)
    assert len(order) == 5


async def test_one_that_is_cancelled_while_it_waits_leaves_the_line() -> None:
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
    async with slots.slot(no_beat, "d"):
        assert order == ["a", "c"]
