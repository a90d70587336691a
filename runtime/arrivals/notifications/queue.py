"""Receive notifications of object stores from an SQS queue, by long polls.

A message is deleted after Temporal accepted the signals of its landing zones. An unreadable message stays: it returns
until the queue moves it to its dead-letter queue, or drops it.
"""

import asyncio
import logging
import re
import threading
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import botocore.config
import botocore.session

from runtime.arrivals.notifications.known_zones import KnownZones
from runtime.arrivals.notifications.receiver_thread import run_in_thread
from runtime.arrivals.notifications.signal_sender import SignalSender
from runtime.arrivals.notifications.timing import TIMING, ReceiverTiming, pause_after
from sluice.arrivals.notifications import StoredObject, UnreadableNotification, read_notification

_AT_ONCE = 10
"""Number of messages received and deleted at a time: the maximum of SQS."""
_REMEMBERED = 1000
"""Number of unreadable messages that are remembered, so that each is logged once."""
_REGION = re.compile(r"sqs\.([a-z0-9-]+)\.amazonaws\.")

log = logging.getLogger("sluice.notifications")


async def receive_from_queue(
    url: str, region: str, known: KnownZones, sender: SignalSender, timing: ReceiverTiming = TIMING
) -> None:
    """Receive notifications from a queue until this is cancelled.

    The polls run in a daemon thread: the worker does not wait for them when it ends.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()

    async def tell(objects: list[set[StoredObject]]) -> None:
        named: dict[str, set[str]] = {}
        for each in objects:
            for zone, files in known.concerned(each).items():
                named.setdefault(zone, set()).update(files)
        await sender.tell(named)

    def take(objects: list[set[StoredObject]]) -> None:
        asyncio.run_coroutine_threadsafe(tell(objects), loop).result()

    receiver = QueueReceiver(url, region, take, stop, timing)
    await run_in_thread(receiver.run, "queue of notifications", stop)


class QueueReceiver:
    """Polls a queue. `take` signals the zones of the messages' objects, and returns when that is done."""

    def __init__(
        self,
        url: str,
        region: str,
        take: Callable[[list[set[StoredObject]]], None],
        stop: threading.Event,
        timing: ReceiverTiming = TIMING,
    ) -> None:
        self._url, self._take, self._stop, self._timing = url, take, stop, timing
        parts = urlsplit(url)
        stated = _REGION.match(parts.netloc)
        self._endpoint, self._region = f"{parts.scheme}://{parts.netloc}", stated[1] if stated else region
        self._unreadable: deque[str] = deque(maxlen=_REMEMBERED)
        self._failures = 0

    def run(self) -> None:
        """Poll until `stop` is set. After an error, make a new client with the then current credentials."""
        while not self._stop.is_set():
            try:
                client = self._client()
                while not self._stop.is_set():
                    self._poll(client)
            except Exception as error:  # the SDK raises many types: credentials, the queue, the network
                self._pause_after(error)

    def _client(self) -> Any:
        once = botocore.config.Config(
            connect_timeout=10,
            read_timeout=self._timing.queue_poll + 10,
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        session = botocore.session.get_session()
        return session.create_client("sqs", region_name=self._region, endpoint_url=self._endpoint, config=once)

    def _poll(self, client: Any) -> None:
        answer = client.receive_message(
            QueueUrl=self._url, MaxNumberOfMessages=_AT_ONCE, WaitTimeSeconds=self._timing.queue_poll
        )
        received = answer.get("Messages", [])
        if self._failures:
            log.info("reading notifications from the queue again")
            self._failures = 0
        read = [(message, objects) for message in received if (objects := self._read(message)) is not None]
        if read:
            self._take([objects for _, objects in read])
            self._delete(client, [message for message, _ in read])
        elif received:
            self._stop.wait(pause_after(self._timing.queue_pauses, 1))

    def _read(self, message: dict[str, Any]) -> set[StoredObject] | None:
        """Return the objects of a message; None, and a log line for the first time, if it is unreadable."""
        try:
            return read_notification(message.get("Body", ""))
        except UnreadableNotification as error:
            id = str(message.get("MessageId", ""))
            if id not in self._unreadable:
                self._unreadable.append(id)
                log.warning("the message %s of the queue is not a notification, and stays there: %s", id, error)
            return None

    def _delete(self, client: Any, messages: list[dict[str, Any]]) -> None:
        """Delete messages. A message that could not be deleted returns, and does no harm."""
        entries = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]} for number, message in enumerate(messages)
        ]
        client.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def _pause_after(self, error: Exception) -> None:
        if self._stop.is_set():
            return
        if not self._failures:
            log.warning("cannot read notifications from %s, will try again: %s", self._url, error)
        self._failures += 1
        self._stop.wait(pause_after(self._timing.queue_pauses, self._failures))
