"""The listings of a landing zone: notifications, named files, intervals, and files that settle."""

import asyncio
import time

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from runtime.temporal_client import converter
from sluice.contracts.arrivals import CollectArrivalsResult, LandingZoneInput
from tests.harness.zone_workflow import TEXT, Zone, arrived
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox


@pytest.mark.parametrize(("files", "length"), [(501, 10), (200, 500)], ids=["many", "long"])
async def test_more_names_than_a_request_can_hold_have_the_zone_listed(zone: Zone, files: int, length: int) -> None:
    """Names that arrive during a listing are collected. A hostile sender must not make the next listing impossible."""
    zone.pause = asyncio.Event()
    await zone.start()
    await zone.until(lambda _: len(zone.listings) == 1)
    names = [f"{number:0{length}}" for number in range(files)]
    for start in range(0, files, 100):
        await zone.handle.signal(LandingZone.look, names[start : start + 100])
    zone.pause.set()
    await zone.until(lambda _: len(zone.listings) == 2)
    assert zone.named == [None, None]


async def test_notifications_that_come_often_lead_to_few_listings(zone: Zone) -> None:
    await zone.start()
    await zone.until(lambda _: len(zone.listings) == 1)
    began = time.monotonic()
    for _ in range(20):
        await zone.handle.signal(LandingZone.look)
    took = time.monotonic() - began
    await zone.until(lambda _: len(zone.listings) >= 2)
    await asyncio.sleep(2)
    assert len(zone.listings) <= 3 + took, "one in a second is enough"


async def test_a_notification_during_a_listing_leads_to_another_one(zone: Zone) -> None:
    zone.pause = asyncio.Event()
    await zone.start()
    await zone.until(lambda _: len(zone.listings) == 1)
    await zone.handle.signal(LandingZone.look)
    await zone.status()
    zone.pause.set()
    await zone.until(lambda _: len(zone.listings) == 2)


async def test_files_that_settle_are_listed_again_without_a_notification(zone: Zone) -> None:
    zone.answers = [CollectArrivalsResult(counts={"waiting": 1}, look_in=1.0), arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {})


async def test_a_store_that_does_not_answer_is_reported_when_it_lasts(zone: Zone) -> None:
    away = CollectArrivalsResult(problem="the store does not answer", is_passing=True)
    zone.answers = [away, arrived(), away]
    await zone.start()
    await zone.until(lambda _: bool(zone.listings))
    await zone.list_files()
    await zone.list_files(away)
    assert zone.notices == []
    await zone.list_files(away, arrived())
    await zone.until_notified("the store does not answer")
    await zone.list_files()
    assert zone.notices == ["cannot be listed: the store does not answer"]


async def test_a_listing_that_fails_is_repeated_and_its_history_is_replayed(zone: Zone) -> None:
    zone.answers = [ApplicationError("the store does not answer", type="ServiceUnavailable"), arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {})
    replayer = Replayer(workflows=[LandingZone], workflow_runner=sandbox(), data_converter=converter({}))
    await replayer.replay_workflow(await zone.handle.fetch_history())


async def test_files_that_notifications_name_are_inspected_without_a_listing_of_the_folder(zone: Zone) -> None:
    settles = CollectArrivalsResult(look_in=0.5)
    zone.answers = [CollectArrivalsResult(), settles]
    await zone.start(look=5)
    await zone.until(lambda _: len(zone.listings) == 1)
    await zone.handle.signal(LandingZone.look, ["/landing/b.csv", "/landing/a.csv"])
    await zone.handle.signal(LandingZone.look, ["/landing/a.csv"])
    await zone.until(lambda _: len(zone.listings) == 3)  # once more when the files have settled
    assert zone.named == [None, ["/landing/a.csv", "/landing/b.csv"], []]
    await zone.until(lambda _: len(zone.listings) == 4)  # the interval between two listings continues
    assert zone.named[3] is None
    await zone.handle.signal(LandingZone.look)
    await zone.until(lambda _: len(zone.listings) == 5)
    assert zone.named[4] is None


@pytest.mark.parametrize("answer", [CollectArrivalsResult(look_in=0.5), CollectArrivalsResult(problem="it is away")])
async def test_the_whole_zone_is_listed_while_notifications_may_miss_files(
    zone: Zone, answer: CollectArrivalsResult
) -> None:
    zone.answers = [answer]
    await zone.start()
    await zone.until(lambda _: len(zone.listings) == 1)
    await zone.handle.signal(LandingZone.look, ["/landing/a.csv"])
    await zone.until(lambda _: len(zone.listings) == 2)
    await zone.handle.signal(LandingZone.look, ["/landing/b.csv"])
    await zone.until(lambda _: len(zone.listings) == 3)
    assert zone.named == [None, None, ["/landing/b.csv"]]


async def test_a_zone_that_is_named_very_many_files_is_listed(zone: Zone) -> None:
    await zone.start()
    await zone.until(lambda _: len(zone.listings) == 1)
    for part in range(3):
        await zone.handle.signal(LandingZone.look, [f"/landing/{part}-{number}.csv" for number in range(200)])
    await zone.until(lambda _: len(zone.listings) == 2)
    assert zone.named == [None, None]


async def test_another_version_of_a_pipeline_lists_the_zone(zone: Zone) -> None:
    handle = await zone.start()
    await zone.until(lambda _: len(zone.listings) == 1)
    given = LandingZoneInput(pipeline=TEXT, look=600, at_once=1, on_failure="continue", name="p", installation="here")
    await handle.execute_update(LandingZone.replace_pipeline, given)
    await zone.until(lambda _: len(zone.listings) == 2)
    assert zone.named == [None, None]
