"""Notifications by SQS, of moto's server, on a real Temporal server."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from temporalio.client import Client

from runtime.arrivals.notifications import queue, receivers, signal_sender
from tests.harness.notified_zone import NotifiedZones, notified_zones
from tests.harness.queue_server import REGION, QueueServer
from tests.harness.waiting import until


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueServer]:
    monkeypatch.setattr(queue, "_POLL", 1)
    monkeypatch.setattr(queue, "_PAUSES", (0.2,))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
    server = QueueServer()
    yield server
    server.stop()


@pytest.fixture
async def zones(client: Client) -> AsyncIterator[NotifiedZones]:
    async with notified_zones(client) as zones:
        await zones.start("orders", "s3://landing/orders/")
        await zones.start("rides", "s3://landing/rides/")
        yield zones


def created(bucket: str, key: str) -> str:
    event = {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}
    return json.dumps({"Records": [event]})


async def until_messages(server: QueueServer, count: int) -> None:
    """Wait until the queue has this number of messages."""

    async def are_there() -> bool:
        return await asyncio.to_thread(server.messages) == count

    await until(are_there, server.messages)


async def test_messages_are_deleted_when_their_zones_were_told(zones: NotifiedZones, server: QueueServer) -> None:
    server.send(*[created("landing", "orders/a.csv")] * 3, created("unknown", "x"), '{"Event": "s3:TestEvent"}')
    async with zones.receiving(sluice_events_queue=server.url, aws_region=REGION) as running:
        await zones.until("orders", 2)
        await until_messages(server, 0)
        assert running.known.for_nobody == 1
        server.send(created("landing", "rides/a.csv"))
        await zones.until("rides", 2)
        assert zones.listings["orders"] == 2


async def test_while_temporal_takes_no_signal_messages_stay(
    zones: NotifiedZones, server: QueueServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_away, send = True, signal_sender.signal_by(zones.client)

    async def sometimes(zone: str, files: list[str]) -> bool:
        if is_away:
            raise RuntimeError("Temporal is unavailable")
        return await send(zone, files)

    monkeypatch.setattr(receivers, "signal_by", lambda client: sometimes)
    monkeypatch.setattr(signal_sender, "_PAUSES", (0.2,))
    server.send(created("landing", "orders/a.csv"))
    async with zones.receiving(sluice_events_queue=server.url, aws_region=REGION):
        await asyncio.sleep(2.5)
        assert (server.messages(), zones.listings["orders"]) == (1, 1)
        is_away = False
        await zones.until("orders", 2)
        await until_messages(server, 0)


async def test_an_unreadable_message_is_left_and_logged_once(
    zones: NotifiedZones, server: QueueServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        server.send("hello")
        async with zones.receiving(sluice_events_queue=server.url, aws_region=REGION):
            await asyncio.sleep(3.5)
            server.send(created("landing", "orders/a.csv"))
            await zones.until("orders", 2)
            await until_messages(server, 1)
    assert len([message for message in caplog.messages if "is not a notification, and stays there" in message]) == 1
    assert zones.listings["rides"] == 1


@pytest.mark.parametrize("trouble", ["expired credentials", "a queue that is missing"])
async def test_trouble_is_logged_once_and_tried_again(
    zones: NotifiedZones, server: QueueServer, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    if trouble == "expired credentials":
        server.refuse_all_with = "ExpiredToken"
    else:
        server.delete_queue()

    def lines() -> list[str]:
        return [message for message in caplog.messages if "cannot read notifications from" in message]

    with caplog.at_level(logging.WARNING):
        async with zones.receiving(sluice_events_queue=server.url, aws_region=REGION):
            await until(lines)
            await asyncio.sleep(1)  # until the receiver has tried again
            server.refuse_all_with = ""
            server.make_queue()
            server.send(created("landing", "orders/a.csv"))
            await zones.until("orders", 2)
    (line,) = lines()
    assert ("ExpiredToken" if trouble == "expired credentials" else "NonExistentQueue") in line


def test_the_region_of_a_queue_of_amazon_is_in_its_url() -> None:
    def region(url: str) -> str:
        return queue.QueueReceiver(url, "us-east-1", lambda _: None, threading.Event())._region

    assert region("https://sqs.eu-central-1.amazonaws.com/1/q") == "eu-central-1"
    assert region("http://127.0.0.1:5000/1/q") == "us-east-1"
