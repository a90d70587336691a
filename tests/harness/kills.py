"""Kill services of a test's own stack and start them again, once or at random."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devstack.processes import Daemon
from devstack.stack import Stack
from tests.harness.processes import wait_for


def find_daemon(stack: Stack, name: str) -> Daemon:
    """Return a service of a running stack."""
    (daemon,) = (each for each in stack.daemons() if each.name == name)
    return daemon


def kill_service(stack: Stack, name: str, away: float = 0) -> dict[str, str]:
    """Kill a service with SIGKILL and start it again after `away` seconds. Return the stack's variables afterwards."""
    daemon = find_daemon(stack, name)
    os.kill(daemon.pid, signal.SIGKILL)
    wait_for(lambda: not daemon.alive())
    time.sleep(away)
    return stack.up(with_worker=False)


@contextmanager
def repeatedly(action: Callable[[], None], draw: random.Random, least: float, most: float) -> Iterator[None]:
    """Repeat an action in a thread, at random intervals in seconds. Raise its first error at the end."""
    ended, problems = threading.Event(), []

    def loop() -> None:
        try:
            while not ended.wait(draw.uniform(least, most)):
                action()
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if problems:
        raise problems[0]
