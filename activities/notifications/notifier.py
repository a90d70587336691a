"""The port for services that bring messages to people, and the routes to them."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from sluice.errors import ServiceUnavailable, SluiceError, Terminal
from sluice.notifications.message import Message
from sluice.notifications.routes import Route

_log = logging.getLogger("sluice.notifications")
_REMEMBERED = 10_000
"""Maximum number of messages that a worker remembers."""


class Notifier(Protocol):
    """A service that brings messages to people."""

    def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            MessageRefused: the service refuses it, now and later.
            ServiceUnavailable: the service does not answer, or may take the message later.
        """


@dataclass
class RoutedNotifier:
    """Sends each message by all routes that take it."""

    routes: Sequence[Route]
    open: Callable[[str], Notifier]
    """Opens the service of a route."""
    clock: Callable[[], float] = time.monotonic
    _opened: dict[str, Notifier] = field(default_factory=dict)
    _sent: dict[tuple[int, str], float] = field(default_factory=dict)
    """By route and content, the time of the last message."""
    _delivered: dict[tuple[str, int], None] = field(default_factory=dict)
    """Deliveries whose activity may be tried again, because another route failed."""
    _lock: Lock = field(default_factory=Lock)

    def send(self, message: Message, key: str) -> None:
        """Send a message by each route that takes it. A route that fails does not stop the others.

        Args:
            key: names the message in its repetitions, so that a route that delivered it does not do so twice.

        Raises:
            SluiceError: a route failed: the first one that may succeed later, else the first one.
        """
        failures: list[SluiceError] = []
        for number, route in enumerate(self.routes):
            if not route.takes(message) or self._is_repeated(number, route, message, key):
                continue
            try:
                self._service(route.to).send(message)
            except SluiceError as error:
                failures.append(error)
            except Exception as error:  # of whatever kind a service raises; its text may contain an address with a key
                failures.append(ServiceUnavailable(f"a service of messages failed: {type(error).__name__}"))
            else:
                self._remember(number, message, key)
        if failures:
            raise next((each for each in failures if not isinstance(each, Terminal)), failures[0])

    def _service(self, to: str) -> Notifier:
        if to not in self._opened:
            self._opened[to] = self.open(to)
        return self._opened[to]

    def _is_repeated(self, number: int, route: Route, message: Message, key: str) -> bool:
        with self._lock:
            if (key, number) in self._delivered:
                return True
            sent = self._sent.get((number, message.content))
        is_quiet = bool(route.quiet and sent is not None and self.clock() - sent < route.quiet)
        if is_quiet and message.event != "waiting":  # each run that waits needs its own decision
            _log.info("a message is not repeated within %s s: %s", route.quiet, message.title)
            return True
        return False

    def _remember(self, number: int, message: Message, key: str) -> None:
        with self._lock:
            self._sent[(number, message.content)] = self.clock()
            self._delivered[(key, number)] = None
            _forget_oldest(self._sent)
            _forget_oldest(self._delivered)


def _forget_oldest(remembered: dict[tuple[int, str], float] | dict[tuple[str, int], None]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.pop(next(iter(remembered)))  # type: ignore[arg-type]  # each has keys of one kind
