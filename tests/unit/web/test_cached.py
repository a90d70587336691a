"""Values that readers share: one reading for many, no error kept, no reader disturbs another."""

import asyncio

import pytest

from tests.harness.waiting import in_time
from web.cached import Cached


class Source:
    """A source whose readings wait until the test lets them end."""

    def __init__(self) -> None:
        self.readings: list[asyncio.Future[str]] = []
        self.began = asyncio.Event()

    async def read(self) -> str:
        self.readings.append(asyncio.get_running_loop().create_future())
        self.began.set()
        return await self.readings[-1]


async def _reader(cached: Cached[str], source: Source) -> "asyncio.Task[str]":
    """Return a reader whose reading has begun."""
    source.began.clear()
    reader = asyncio.create_task(cached.get())
    await in_time(source.began.wait())
    return reader


async def test_many_readers_share_one_reading() -> None:
    source = Source()
    cached = Cached(source.read, 60)
    first = await _reader(cached, source)
    others = [asyncio.create_task(cached.get()) for _ in range(100)]
    await asyncio.sleep(0)
    source.readings[0].set_result("value")
    assert set(await in_time(asyncio.gather(first, *others))) == {"value"}
    assert await cached.get() == "value"
    assert len(source.readings) == 1


async def test_an_old_value_is_read_again() -> None:
    source = Source()
    cached = Cached(source.read, 0)
    for value in ("first", "second"):
        reader = await _reader(cached, source)
        source.readings[-1].set_result(value)
        assert await in_time(reader) == value


async def test_an_error_reaches_all_readers_and_is_not_kept() -> None:
    source = Source()
    cached = Cached(source.read, 60)
    readers = [await _reader(cached, source), asyncio.create_task(cached.get())]
    await asyncio.sleep(0)
    source.readings[0].set_exception(ValueError("broken"))
    results = await in_time(asyncio.gather(*readers, return_exceptions=True))
    assert [type(each) for each in results] == [ValueError, ValueError]
    again = await _reader(cached, source)
    source.readings[1].set_result("value")
    assert await in_time(again) == "value"


async def test_an_error_that_no_reader_saw_is_not_kept() -> None:
    source = Source()
    cached = Cached(source.read, 60)
    leaving = await _reader(cached, source)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    source.readings[0].set_exception(ValueError("broken"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    again = await _reader(cached, source)
    source.readings[1].set_result("value")
    assert await in_time(again) == "value"


async def test_a_reader_that_leaves_does_not_disturb_the_others() -> None:
    source = Source()
    cached = Cached(source.read, 60)
    leaving, staying = await _reader(cached, source), asyncio.create_task(cached.get())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    source.readings[0].set_result("value")
    assert await in_time(staying) == "value"
    assert len(source.readings) == 1


async def test_a_forgotten_value_is_read_again_even_if_a_reading_is_under_way() -> None:
    """The reading may have begun before the decision after which it is forgotten."""
    source = Source()
    cached = Cached(source.read, 60)
    early = await _reader(cached, source)
    cached.forget()
    late = await _reader(cached, source)
    source.readings[1].set_result("after")
    assert await in_time(late) == "after"
    source.readings[0].set_result("before")
    assert await in_time(early) == "before"
    assert await cached.get() == "after"
