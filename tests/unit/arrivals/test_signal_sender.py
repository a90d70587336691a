"""Landing zones are notified to list their files: rarely enough, and also if Temporal does not answer for a while."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from runtime.arrivals.notifications.signal_sender import SignalSender
from runtime.arrivals.notifications.timing import ReceiverTiming
from tests.harness.waiting import in_time, until


class Recorder:
    """A recorder of notifications, which can refuse them."""

    def __init__(self) -> None:
        self.signals: list[str] = []
        self.times: list[float] = []
        self.tries = 0
        self.error: Exception | None = None
        self.pause: asyncio.Event | None = None
        self.files: list[list[str]] = []
        self.ended: set[str] = set()
        self.failing: set[str] = set()

    async def send(self, zone: str, files: list[str]) -> bool:
        self.tries += 1
        self.files.append(files)
        if self.pause:
            await self.pause.wait()
        if self.error or zone in self.failing:
            raise self.error or RuntimeError(f"{zone} takes no signal")
        if zone in self.ended:
            return False
        self.signals.append(zone)
        self.times.append(asyncio.get_running_loop().time())
        return True

    async def until(self, count: int) -> None:
        await until(lambda: len(self.signals) >= count, lambda: self.signals)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def sender(recorder: Recorder) -> AsyncIterator[SignalSender]:
    async with sending(recorder, 0.05) as sender:
        yield sender


@asynccontextmanager
async def sending(recorder: Recorder, pause: float) -> AsyncIterator[SignalSender]:
    """Run a sender with a pause after each error."""
    sender = SignalSender(recorder.send, ReceiverTiming(signal_pauses=(pause,)))
    task = asyncio.create_task(sender.run())
    yield sender
    assert not task.done()
    task.cancel()


async def test_many_notifications_are_one_signal(sender: SignalSender, recorder: Recorder) -> None:
    for _ in range(1000):
        sender.request({"a": set(), "b": set()})
    await asyncio.sleep(0.1)
    sender.request({"a": set()})
    await recorder.until(2)
    await asyncio.sleep(0.3)
    assert sorted(recorder.signals) == ["a", "b"]


async def test_a_signal_names_the_files_of_its_notifications(sender: SignalSender, recorder: Recorder) -> None:
    recorder.error = RuntimeError("no server")
    sender.request({"a": {"1"}})
    sender.request({"a": {"2", "1"}})
    await until(lambda: bool(recorder.tries), lambda: recorder.files)
    sender.request({"a": {"3"}})
    recorder.error = None
    await recorder.until(1)
    assert (recorder.files[0], recorder.files[-1]) == (["1", "2"], ["1", "2", "3"])


@pytest.mark.parametrize(
    "named",
    [
        pytest.param([{"1"}, set()], id="one that names none"),
        pytest.param([{str(number)} for number in range(201)], id="many files"),
        pytest.param([{"ä" * 40_000}], id="long names"),
        pytest.param([{"1"}, {"\ud800"}], id="half a character"),
    ],
)
async def test_what_a_signal_cannot_name_has_the_whole_zone_listed(
    sender: SignalSender, recorder: Recorder, named: list[set[str]]
) -> None:
    for files in named:
        sender.request({"a": files})
    sender.request({"a": {"one more"}})
    await recorder.until(1)
    assert recorder.files == [[]]


async def test_a_notification_after_the_signal_is_another_one_a_second_later(
    sender: SignalSender, recorder: Recorder
) -> None:
    sender.request({"a": set()})
    await recorder.until(1)
    for _ in range(20):
        sender.request({"a": set()})
        await asyncio.sleep(0.02)
    await recorder.until(2)
    assert recorder.times[1] - recorder.times[0] > 0.9


async def test_what_may_wait_longer_goes_along_with_what_may_not(sender: SignalSender, recorder: Recorder) -> None:
    sender.request({"a": set()})
    await recorder.until(1)
    sender.request({"a": set()}, every=60.0)
    await asyncio.sleep(1.2)
    assert recorder.signals == ["a"]
    sender.request({"a": set()})
    await recorder.until(2)


async def test_a_notification_during_a_signal_is_not_lost(sender: SignalSender, recorder: Recorder) -> None:
    recorder.pause = asyncio.Event()
    sender.request({"a": set()})
    await until(lambda: recorder.tries)
    assert (recorder.tries, recorder.signals) == (1, [])
    sender.request({"a": set()})
    recorder.pause.set()
    await recorder.until(2)


async def test_a_failing_temporal_is_tried_again_and_holds_one_entry_for_each_zone(
    sender: SignalSender, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.error = RuntimeError("no server")
    with caplog.at_level(logging.INFO):
        telling = asyncio.create_task(sender.tell({"a": set(), "b": set()}))
        while recorder.tries <= 6 or len(sender._waiting) < 3:
            sender.request({"a": set(), "b": set(), "c": set()})
            await asyncio.sleep(0.02)
    assert not telling.done()
    assert len(sender._waiting) == 3
    assert [record.message for record in caplog.records] == ["cannot notify a, will try again: no server"]
    recorder.error = None
    await in_time(telling)
    await recorder.until(3)
    assert set(recorder.signals) == {"a", "b", "c"}


async def test_a_zone_that_always_fails_holds_no_other_one_up(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.failing = {"bad"}
    with caplog.at_level(logging.WARNING):
        async with sending(recorder, 3600.0) as sender:
            sender.request({"bad": set()})
            await asyncio.sleep(0.3)
            sender.request({"bad": set(), "good": set()})
            await recorder.until(1)
            await asyncio.sleep(0.3)
    assert (recorder.signals, recorder.tries) == (["good"], 2), "what fails is not tried sooner because of a request"
    assert len(caplog.messages) == 1 and "bad takes no signal" in caplog.messages[0]


async def test_a_zone_that_has_ended_is_told_nothing_and_holds_nobody_up(
    sender: SignalSender, recorder: Recorder
) -> None:
    recorder.ended = {"a"}
    await in_time(sender.tell({"a": set(), "b": set()}))
    assert recorder.signals == ["b"]
    await in_time(sender.tell({}))


async def test_a_receiver_that_stops_waiting_stops_nothing(sender: SignalSender, recorder: Recorder) -> None:
    recorder.error = RuntimeError("no server")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(sender.tell({"a": set()}), 0.4)
    recorder.error = None
    await recorder.until(1)
