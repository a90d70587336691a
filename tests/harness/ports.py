"""Ports for servers of tests, on 127.0.0.1."""

import random

from devstack.ports import RARELY_USED, choose_port


def unused_port() -> int:
    """Return a free port at random. With a usual one, a second server would get it while the first restarts."""
    return choose_port(random.choice(RARELY_USED), None, "", set())
