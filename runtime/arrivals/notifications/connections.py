"""Limit the connections to the receiver of notifications: their duration, and their number.

aiohttp's server alone waits forever for the headers of a request, and accepts as many connections as the
process may open files.
"""

import asyncio
from collections.abc import Callable


class ConnectionLimits:
    """Factory for the protocols of a server's connections. If there are too many, it cuts the oldest connection.

    A request takes milliseconds, so the oldest connection is the least likely to carry a real request.
    """

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol], seconds: float, at_once: int) -> None:
        self._make_protocol, self._seconds, self._at_once = make_protocol, seconds, at_once
        self._open: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        """Open connections, oldest first, each with the timer that cuts it."""

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _LimitedConnection(self._make_protocol(), self)

    def add(self, transport: asyncio.Transport) -> None:
        """Count a connection that was opened."""
        self._open[transport] = asyncio.get_running_loop().call_later(self._seconds, transport.abort)
        if len(self._open) > self._at_once:
            oldest = next(iter(self._open))
            self.remove(oldest)
            oldest.abort()

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that was closed."""
        if timer := self._open.pop(transport, None):
            timer.cancel()


class _LimitedConnection(asyncio.Protocol):
    """Passes the events of a connection on to the protocol of the server."""

    _transport: asyncio.Transport

    def __init__(self, protocol: asyncio.Protocol, limits: ConnectionLimits) -> None:
        self._protocol, self._limits = protocol, limits
        self.data_received = protocol.data_received  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._protocol.connection_made(transport)
        self._limits.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.remove(self._transport)
        self._protocol.connection_lost(exc)
