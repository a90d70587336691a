"""Choose ports on 127.0.0.1, and name the process that uses a port."""

import fcntl
import json
import os
import random
import socket
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from devstack.errors import StackError

_HOST = "127.0.0.1"
RARELY_USED = range(20_000, 32_768)
"""Range of ports below those that Linux and macOS use for outgoing connections."""
_TRIES = 100


@contextmanager
def reserved_ports() -> Iterator[None]:
    """Let only one stack of this user at a time choose ports and start to listen, so that none is chosen twice."""
    path = Path(tempfile.gettempdir()) / f"sluice-ports-{os.getuid()}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def choose_port(usual: int, demanded: int | None, variable: str, taken: set[int]) -> int:
    """Return the demanded port, else the usual one if it is free, else any free one; add it to `taken`.

    Raises:
        StackError: the demanded port is in use.
    """
    if demanded is not None and (demanded in taken or not _is_free(demanded)):
        raise StackError(f"{variable}={demanded}: the port is in use by {holder(demanded)}; free it or name another")
    port = demanded or (usual if usual not in taken and _is_free(usual) else _any_free())
    taken.add(port)
    return port


def last_ports(file: Path, names: Collection[str]) -> dict[str, int]:
    """Return the ports that a stack last used, from its file, so that old links still work."""
    try:
        last = json.loads(file.read_text())
        return {name: last[name] for name in names if isinstance(last.get(name), int)}
    except (OSError, ValueError, AttributeError):
        return {}


def holder(port: int) -> str:
    """Describe the process that listens on a port, if this user may see it."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        connections = []
    for each in connections:
        if each.laddr and each.laddr.port == port and each.status == psutil.CONN_LISTEN and each.pid:
            try:
                command = " ".join(psutil.Process(each.pid).cmdline())
            except psutil.Error:
                command = "?"
            return f"process {each.pid} ({command[:120]})"
    return "another process"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _any_free() -> int:
    """Return a free port, if possible one that the system does not use for outgoing connections.

    Otherwise a server that restarts after a kill could find its port used by a connection of another process.
    """
    for candidate in random.sample(RARELY_USED, _TRIES):
        if _is_free(candidate):
            return candidate
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
