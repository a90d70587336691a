"""A time limit for the shutdown of a process. A thread that waits for an unreachable service cannot exceed it."""

import logging
import os
import threading

EXIT_CODE = 1
"""Exit code of a process that did not stop in time."""

log = logging.getLogger("sluice.shutdown")


def exit_after(seconds: float) -> None:
    """End this process after some seconds, whatever its threads wait for, unless it ends before.

    Nothing is lost: work in progress is recovered as after a crash.
    """
    timer = threading.Timer(seconds, _exit, [seconds])
    timer.daemon = True
    timer.start()


def _exit(seconds: float) -> None:
    try:
        log.error("did not stop within %g s, and ends now: another worker continues what was under way", seconds)
    finally:
        os._exit(EXIT_CODE)
