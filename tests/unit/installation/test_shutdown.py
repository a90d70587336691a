"""The limit for the shutdown of a worker."""

import subprocess
import sys

from runtime.shutdown import EXIT_CODE
from tests.harness.waiting import LIMIT

_WAITS_FOREVER = """\
import threading
from concurrent.futures import ThreadPoolExecutor
from runtime.shutdown import exit_after

executor = ThreadPoolExecutor(1)
executor.submit(threading.Event().wait{timeout})
exit_after({seconds})
"""


def test_a_thread_that_waits_forever_does_not_keep_a_process_alive() -> None:
    ended = _run(_WAITS_FOREVER.format(timeout="", seconds=0.5))
    assert ended.returncode == EXIT_CODE
    assert "did not stop within 0.5 s" in ended.stderr


def test_a_process_that_stops_in_time_is_left_alone() -> None:
    ended = _run(_WAITS_FOREVER.format(timeout=", 0.1", seconds=60))
    assert (ended.returncode, ended.stderr) == (0, "")


def _run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=False)
