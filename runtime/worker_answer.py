"""Notice to a person whose command waits for a worker."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_QUIET = 5.0
"""Time without an answer until the notice, in seconds."""
_notice: ContextVar[Callable[[], None] | None] = ContextVar("notice", default=None)


def notice_if_slow(print_notice: Callable[[], None]) -> None:
    """Let this command print a notice, once, when an answer of a worker takes long. By default, none is printed."""
    was_printed = False

    def print_once() -> None:
        nonlocal was_printed
        if not was_printed:
            was_printed = True
            print_notice()

    _notice.set(print_once)


@contextmanager
def waiting_for_worker() -> Iterator[None]:
    """Print the notice of the command if the block takes long."""
    print_notice = _notice.get()
    timer = asyncio.get_running_loop().call_later(_QUIET, print_notice) if print_notice else None
    try:
        yield
    finally:
        if timer:
            timer.cancel()
