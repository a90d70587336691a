"""Notifications by HTTP on a real Temporal server: only the landing zones that they concern list their files."""

import asyncio
import json
import logging
import socket
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from runtime.arrivals.notifications.webhook import WebhookLimits, events_address, webhook_app
from sluice.arrivals.notifications import MAX_BYTES, StoredObject
from sluice.contracts.arrivals import ZONE_MEMO
from sluice.errors import BadEnvironment
from sluice.settings import Settings
from tests.harness.notified_zone import NotifiedZones
from tests.harness.ports import unused_port
from tests.harness.waiting import LIMIT, in_time, until

TOKEN = "0123456789abcdef01234567"


@pytest.fixture
def address() -> str:
    return f"127.0.0.1:{unused_port()}"


def created(bucket: str, *keys: str) -> bytes:
    records = [
        {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}} for key in keys
    ]
    return json.dumps({"Records": records}).encode()


async def post(address: str, body: bytes, path: str = "/", **headers: str) -> tuple[int, str]:
    """Send a notification as soon as a receiver listens; return its answer."""
    async with aiohttp.ClientSession() as session:
        answers: list[tuple[int, str]] = []

        async def is_answered() -> bool:
            with suppress(aiohttp.ClientConnectorError):
                async with session.post(f"http://{address}{path}", data=body, headers=headers) as response:
                    assert response.headers["Connection"] == "close"
                    answers.append((response.status, await response.text()))
            return bool(answers)

        await until(is_answered, lambda: f"nothing listens at {address}")
        return answers[0]


async def test_only_the_zones_that_a_notification_concerns_are_listed(zones: NotifiedZones, address: str) -> None:
    await zones.start("orders", "s3://landing/orders/")
    await zones.start("rides", "s3://landing/rides/*.csv")
    async with zones.receiving(sluice_events_address=address) as receivers:
        for _ in range(3):  # each event three times
            assert (await post(address, created("landing", "orders/a.csv", "orders/b.csv")))[0] == 204
        await zones.until("orders", 2)
        named = ["s3://landing/orders/a.csv", "s3://landing/orders/b.csv"]
        assert zones.named["orders"] == [None, named]
        assert (await post(address, created("landing", "other/a.csv")))[0] == 204
        assert (await post(address, created("unknown", "orders/a.csv")))[0] == 204
        assert receivers.known.for_nobody == 2
        await asyncio.sleep(2)
        assert zones.listings == {"orders": 2, "rides": 1}
        await post(address, created("landing", "rides/a.csv"))
        await zones.until("rides", 2)
        assert zones.listings["orders"] == 2


async def test_what_is_no_notification_is_refused_and_changes_nothing(zones: NotifiedZones, address: str) -> None:
    await zones.start("orders", "s3://landing/")
    async with zones.receiving(sluice_events_address=address):
        status, text = await post(address, b"hello")
        assert (status, "this is not a notification: it is not JSON" in text) == (400, True)
        status, text = await post(address, b" " * (MAX_BYTES + 1))
        assert (status, "1,048,576 bytes" in text) == (413, True)
        assert (await post(address, b'{"Service": "S3", "Event": "s3:TestEvent"}'))[0] == 204
        await asyncio.sleep(1.5)
        assert zones.listings == {"orders": 1}


async def test_a_body_that_does_not_arrive_is_not_waited_for(zones: NotifiedZones, address: str) -> None:
    async with zones.receiving(limits=WebhookLimits(body=0.5), sluice_events_address=address):
        await post(address, b"{}")
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        answer = await in_time(reader.read())
        assert answer.startswith(b"HTTP/1.1 408 ")
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nX: "])
async def test_a_connection_without_a_request_is_cut(sent: bytes, zones: NotifiedZones, address: str) -> None:
    async with zones.receiving(limits=WebhookLimits(connection=1.0), sluice_events_address=address):
        await post(address, b"{}")
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write(sent)
        ended = asyncio.ensure_future(reader.read())
        started = asyncio.get_running_loop().time()
        while not ended.done():  # further bytes do not prolong the connection
            assert asyncio.get_running_loop().time() - started < LIMIT
            writer.write(b"x" if sent else b"")
            await asyncio.sleep(0.1)
        assert ended.exception() or not ended.result()
        writer.close()


async def test_connections_that_do_nothing_keep_nobody_out(zones: NotifiedZones, address: str) -> None:
    async with zones.receiving(limits=WebhookLimits(connections=3), sluice_events_address=address):
        await post(address, b"{}")
        idle = [await asyncio.open_connection(*address.split(":")) for _ in range(6)]
        assert (await post(address, b'{"Service": "S3", "Event": "s3:TestEvent"}'))[0] == 204
        ended = [asyncio.ensure_future(reader.read()) for reader, _ in idle]
        await until(lambda: sum(each.done() for each in ended) >= 4)
        await asyncio.sleep(0.5)
        assert [each.done() for each in ended] == [True] * 4 + [False] * 2, "the oldest were cut, and no others"
        for _, writer in idle:
            writer.close()
        await asyncio.wait(ended)
        assert all(each.exception() or not each.result() for each in ended)


async def test_with_a_token_nobody_else_is_listened_to(zones: NotifiedZones, address: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    await zones.start("orders", "s3://landing/")
    body = created("landing", "a.csv")
    async with zones.receiving(sluice_events_address=address, sluice_events_token_file=str(file)):
        assert (await post(address, body))[0] == 401
        assert (await post(address, body, f"/{TOKEN[:-1]}"))[0] == 401
        assert (await post(address, body, Authorization="Bearer ä"))[0] == 401
        await asyncio.sleep(1.5)
        assert zones.listings == {"orders": 1}
        assert (await post(address, body, Authorization=f"Bearer {TOKEN}"))[0] == 204
        await zones.until("orders", 2)
        assert (await post(address, body, f"/{TOKEN}/s3"))[0] == 204
        await zones.until("orders", 3)


def test_settings_that_would_let_anybody_send_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("short")
    with pytest.raises(BadEnvironment, match="other machines can reach it"):
        events_address(Settings.of(sluice_events_address="0.0.0.0:7099").arrivals)
    for port in (0, 99999):
        with pytest.raises(BadEnvironment, match="from 1 to 65535"):
            events_address(Settings.of(sluice_events_address=f"127.0.0.1:{port}").arrivals)
    with pytest.raises(BadEnvironment, match="at least 16 letters"):
        events_address(Settings.of(sluice_events_address="127.0.0.1:7099", sluice_events_token_file=str(file)).arrivals)
    file.write_text(TOKEN)
    stated = Settings.of(sluice_events_address="0.0.0.0:7099", sluice_events_token_file=str(file))
    assert events_address(stated.arrivals) == ("0.0.0.0", 7099, TOKEN)
    assert events_address(Settings().arrivals) is None


async def test_refusals_are_logged_seldom_and_a_subscription_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    runner = web.AppRunner(webhook_app(TOKEN, lambda _: None, clock=lambda: now))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"127.0.0.1:{runner.addresses[0][1]}"

    def logged() -> list[str]:  # Temporal's core logs too
        return [record.getMessage() for record in caplog.records if record.name == "sluice.notifications"]

    subscription = json.dumps({"Type": "SubscriptionConfirmation", "TopicArn": "arn:aws:sns:eu:1:files\n"}).encode()
    try:
        with caplog.at_level(logging.WARNING, "sluice.notifications"):
            for _ in range(3):
                assert (await post(address, b"{}"))[0] == 401
                assert (await post(address, b"{}", f"/{TOKEN}"))[0] == 400
                assert (await post(address, subscription, f"/{TOKEN}"))[0] == 400
            assert [len(logged()), " ".join(logged()).count("SLUICE_EVENTS_QUEUE")] == [3, 1]
            messages = " ".join(logged())  # the log may quote text as JSON, as a worker's log does
            assert r"the topic 'arn:aws:sns:eu:1:files\n'" in messages and "token" in messages
            now += 600
            await post(address, b"{}")
            assert len(logged()) == 4
    finally:
        await runner.cleanup()


async def test_a_zone_whose_memo_is_odd_stops_no_other_one(
    zones: NotifiedZones, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    await zones.start("orders", "s3://landing/")
    odd = {"installation": zones.installation, "name": "odd"}
    await zones.client.start_workflow("LandingZone", id=zones.id("odd"), task_queue="nowhere", memo={ZONE_MEMO: odd})
    try:
        while not [each async for each in zones.client.list_workflows(f'WorkflowId = "{zones.id("odd")}"')]:
            await asyncio.sleep(0.1)
        async with zones.receiving(sluice_events_address=address):
            await post(address, created("landing", "a.csv"))
            await zones.until("orders", 2)
        assert len([each for each in caplog.messages if "the landing zone 'odd' gets no notifications" in each]) == 1
    finally:
        await zones.end("odd")


async def test_a_port_that_another_worker_has_is_waited_for(
    zones: NotifiedZones, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refusals() -> list[str]:
        return [each for each in caplog.messages if "cannot receive notifications" in each]

    host, port = address.split(":")
    await zones.start("orders", "s3://landing/")
    with caplog.at_level(logging.WARNING), socket.create_server((host, int(port))) as other:
        async with zones.receiving(limits=WebhookLimits(retry=0.1), sluice_events_address=address):
            await until(refusals)
            await asyncio.sleep(0.5)  # until the receiver has tried again
            assert len(refusals()) == 1
            other.close()
            assert (await post(address, created("landing", "a.csv")))[0] == 204
            await zones.until("orders", 2)


async def test_zones_that_are_deployed_later_are_listed_and_ended_ones_forgotten(
    zones: NotifiedZones, address: str
) -> None:
    await zones.start("old", "s3://landing/old/")
    async with zones.receiving(sluice_events_address=address) as receivers:
        await post(address, created("landing", "new/a.csv"))
        assert receivers.known.for_nobody == 1
        await zones.start("new", "s3://landing/new/")
        await zones.until("new", 2)  # once by itself, and once for the notification from before its deployment
        await zones.end("old")
        await post(address, created("landing", "old/a.csv", "new/b.csv"))
        await zones.until("new", 3)
        await until(
            lambda: not receivers.known.concerned({StoredObject("landing", "old/b.csv")}), lambda: receivers.known.zones
        )
        assert zones.listings["old"] == 1, "a worker that starts tells no zone"
