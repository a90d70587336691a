"""Notifications by SQS, of moto's server, on a real Temporal server."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from temporalio.client import Client, Interceptor, OutboundInterceptor, SignalWorkflowInput
from temporalio.service import RPCError, RPCStatusCode

from runtime.arrivals.notifications.queue import QueueReceiver
from tests.harness.moto_server import REGION
from tests.harness.notified_zone import NotifiedZones, notified_zones
from tests.harness.queue_server import QueueServer
from tests.harness.waiting import until


class Network(Interceptor):
    """A network on which no signal reaches Temporal at first."""

    takes_signals = False

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Signals(next, self)


class _Signals(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, network: Network) -> None:
        super().__init__(next)
        self._network = network

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        if not self._network.takes_signals:
            raise RPCError("Temporal is unavailable", RPCStatusCode.UNAVAILABLE, b"")
        await super().signal_workflow(input)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueServer]:
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


async def test_while_temporal_takes_no_signal_messages_stay(zones: NotifiedZones, server: QueueServer) -> None:
    network = Network()
    config = zones.client.config()
    config["interceptors"] = [*config["interceptors"], network]
    away = Client(**config)
    server.send(created("landing", "orders/a.csv"))
    async with zones.receiving(away, sluice_events_queue=server.url, aws_region=REGION):
        await asyncio.sleep(2.5)
        assert (server.messages(), zones.listings["orders"]) == (1, 1)
        network.takes_signals = True
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
        return QueueReceiver(url, "us-east-1", lambda _: None, threading.Event())._region

    assert region("https://sqs.eu-central-1.amazonaws.com/1/q") == "eu-central-1"
    assert region("http://127.0.0.1:5000/1/q") == "us-east-1"
