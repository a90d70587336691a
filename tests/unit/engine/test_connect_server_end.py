"""A job that failed because its Spark Connect server ended is distinguished from a job that failed by itself."""

import pytest

from engine.process.heartbeat import no_heartbeat
from engine.spark.connect import server_has_ended
from engine.spark.connect_server import ExternalConnectServer

STOPPED = "UnknownException: (java.lang.IllegalStateException) Cannot call methods on a stopped SparkContext."


class EndingServer(ExternalConnectServer):
    """A server that ends after a number of calls."""

    def __init__(self, times: int) -> None:
        super().__init__("sc://localhost:1")
        self._left = times

    async def has_ended(self, url: str) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize(
    ("times", "line", "has_ended"),
    [
        pytest.param(0, "ValueError: no", True, id="has ended"),
        pytest.param(3, STOPPED, True, id="is ending"),
        pytest.param(3, "SparkException: Job 7 cancelled because SparkContext was shut down", True, id="in a job"),
        pytest.param(3, "ValueError: no", False, id="goes on"),
        pytest.param(10**9, STOPPED, False, id="never ends"),
    ],
)
async def test_a_server_that_stopped_its_spark_is_given_time_to_end(times: int, line: str, has_ended: bool) -> None:
    """Otherwise, its jobs would be blamed for its end, and pipelines with one attempt would fail."""
    tail = ["Traceback", line, "JVM stacktrace:"]
    server = EndingServer(times)
    assert await server_has_ended(server, "sc://localhost:1", tail, no_heartbeat, patience=1.0) is has_ended
