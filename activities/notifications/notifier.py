"""The port for services that bring messages to people, and the routes to them."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, Protocol

from sluice.errors import ServiceUnavailable, SluiceError
from sluice.notifications.message import Message
from sluice.notifications.routes import Route

_log = logging.getLogger("sluice.notifications")
LIMIT = 15.0
"""Maximum wait for a service to take a message, in seconds: less than the time-out of the activities that send."""
_REMEMBERED = 10_000
"""Maximum number of messages that a worker remembers."""


class Notifier(Protocol):
    """A service that brings messages to people."""

    def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            MessageRefused: the service refuses it permanently.
            ServiceUnavailable: the service does not answer, or may take the message later.
        """


@dataclass
class RoutedNotifier:
    """Sends each message by all routes that take it, at the same time."""

    routes: Sequence[Route]
    open: Callable[[str], Notifier]
    """Opens the service of a route."""
    clock: Callable[[], float] = time.monotonic
    limit: float = LIMIT
    _opened: dict[str, Notifier] = field(default_factory=dict)
    _sent: dict[tuple[int, str], float] = field(default_factory=dict)
    """By route and content, the time of the last message."""
    _deliveries: dict[tuple[str, int], Future[SluiceError | None]] = field(default_factory=dict)
    """Deliveries under way and done, by key and route, with their failure. A repeated activity does not repeat them."""
    _lock: Lock = field(default_factory=Lock)
    _opening: Lock = field(default_factory=Lock)

    def send(self, message: Message, key: str) -> None:
        """Send a message by each route that takes it. A slow or failed route does not stop the others.

        Args:
            key: names the message in its repetitions, so that a route that delivered it does not do so twice.

        Raises:
            SluiceError: a route failed. A failure that a retry may solve comes first.
        """
        taking = [(number, route) for number, route in enumerate(self.routes) if route.takes(message)]
        begun = [(route, self._begin(number, route, message, key)) for number, route in taking]
        deliveries = [(route, delivery) for route, delivery in begun if delivery]
        wait([delivery for _, delivery in deliveries], self.limit)
        failures = [failure for route, delivery in deliveries if (failure := self._failure(route, delivery))]
        if failures:
            raise next((each for each in failures if each.is_retryable), failures[0])

    def service(self, to: str) -> Notifier:
        """Return the service of a route. It is opened once.

        Raises:
            BadEnvironment: it cannot be opened.
        """
        with self._opening:
            if to not in self._opened:
                self._opened[to] = self.open(to)
            return self._opened[to]

    def _begin(self, number: int, route: Route, message: Message, key: str) -> "Future[SluiceError | None] | None":
        """Begin a delivery, or return the one that an earlier try began; return None if the route is quiet."""
        with self._lock:
            if earlier := self._deliveries.get((key, number)):
                return earlier
            if self._is_quiet(number, route, message):
                return None
            delivery = self._deliveries[(key, number)] = Future()
            _forget_oldest(self._deliveries)
        arguments = (self._deliver, number, route, message, key, delivery)
        Thread(target=copy_context().run, args=arguments, name=f"message-{route.service}", daemon=True).start()
        return delivery

    def _deliver(
        self, number: int, route: Route, message: Message, key: str, delivery: "Future[SluiceError | None]"
    ) -> None:
        failure = self._send_by(route, message)
        with self._lock:
            if failure:
                self._deliveries.pop((key, number), None)  # the next try sends the message again
            else:
                self._sent[(number, message.content)] = self.clock()
                _forget_oldest(self._sent)
        delivery.set_result(failure)

    def _send_by(self, route: Route, message: Message) -> SluiceError | None:
        """Send a message by one route; return the failure."""
        try:
            self.service(route.to).send(message)
        except SluiceError as error:
            return error
        except Exception as error:  # services raise any kind; its text may contain an address with a key
            return ServiceUnavailable(f"a service of messages failed: {type(error).__name__}")
        return None

    def _failure(self, route: Route, delivery: "Future[SluiceError | None]") -> SluiceError | None:
        if delivery.done():
            return delivery.result()
        return ServiceUnavailable(f"{route.service} did not take the message within {self.limit:g} s")

    def _is_quiet(self, number: int, route: Route, message: Message) -> bool:
        sent = self._sent.get((number, message.content))
        is_quiet = bool(route.quiet and sent is not None and self.clock() - sent < route.quiet)
        if is_quiet and message.event != "waiting":  # each run that waits needs its own decision
            _log.info("a message is not repeated within %s s: %s", route.quiet, message.title)
            return True
        return False


def _forget_oldest(remembered: dict[Any, Any]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.pop(next(iter(remembered)))
