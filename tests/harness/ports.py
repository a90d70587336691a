"""Ports for servers of tests, on 127.0.0.1."""

import random

from devstack.ports import RARELY_USED, choose_port


def unused_port() -> int:
    """Return a free port at random, so that no other server takes it while this one restarts."""
    return choose_port(random.choice(RARELY_USED), None, "", set())
