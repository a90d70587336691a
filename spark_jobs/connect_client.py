"""Run a program in a session of its own on a Spark Connect server.

The program runs as `spark-submit` would run it; the session that it gets is on the branch of its attempt already.
"""

import atexit
import contextlib
import os
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow  # noqa: F401  # each of these takes its time, once for all jobs that are forked off
from pyspark.sql import SparkSession
from pyspark.sql.connect import functions  # noqa: F401
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession as RemoteSession

from sluice.contracts.spark_jobs import ConnectJobSpec

_INTERNAL = Path(__file__).resolve().parent.parent
_kept: list[RemoteSession] = []
"""Every session, to the end: one that is collected closes its channel wherever Python is, with gRPC's locks held."""
_ROOMS = ("engine", "sluice", "spark_jobs")
_TRIES = 6
"""So often a server is asked that does not answer, for some ten seconds; then the attempt is over."""


def run(order: ConnectJobSpec) -> None:
    """Run the program in its session, and release the session whatever happens; note that it was released."""
    for name in order.earlier:
        release(order, name)
    spark = connect(order, order.session)
    try:
        _bind(spark, order)
        spark.addTag(order.tag)
        spark.registerProgressHandler(_show)  # type: ignore[arg-type]  # a function is one
        sys.argv = [order.program, *order.args]
        if not order.ours:
            _forget_ours()
        sys.path[:] = [str(Path(order.program).parent), *_paths(order)]
        runpy.run_path(order.program, run_name="__main__")
    finally:
        with contextlib.suppress(Exception):
            spark.client.release_session()
            Path(order.released).touch()


def release(order: ConnectJobSpec, session: str) -> None:
    """End what a session still does on the server; it cannot be used again."""
    spark = connect(order, session)
    with contextlib.suppress(Exception):  # a server that is gone holds no session
        spark.interruptTag(order.tag)
        spark.client.release_session()


def connect(order: ConnectJobSpec, session: str) -> RemoteSession:
    """Return a session by its id, made on its first use; it is what `getOrCreate` finds."""
    url = order.url.rstrip("/;")
    os.environ["SPARK_REMOTE"] = f"{url}{';' if ';' in url else '/;'}session_id={session}"
    RemoteSession._default_session = None
    RemoteSession._active_session.session = None
    spark: Any = SparkSession.builder.getOrCreate()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_TRIES, max_backoff=3000)])
    atexit.unregister(spark.client._cleanup_ml_cache)  # the session is released by then
    _kept.append(spark)
    found: RemoteSession = spark
    return found


def _forget_ours() -> None:
    """Let a user's program import modules of its own that are called like ours."""
    for name in [name for name in sys.modules if name.split(".")[0] in _ROOMS]:
        del sys.modules[name]


def _paths(order: ConnectJobSpec) -> list[str]:
    """Return where a program finds modules; a user's finds what it would find without Sluice."""
    if order.ours:
        return sys.path
    return [*order.paths, *(path for path in sys.path if path not in (str(_INTERNAL), str(_INTERNAL / "spark_jobs")))]


def _bind(spark: RemoteSession, order: ConnectJobSpec) -> None:
    """Configure the session; refuse what only a server's start could heed."""
    spark.conf._set_all({**order.conf}, silent=True)
    spark.conf._set_all({**order.bound}, silent=False)
    unheeded = sorted(key for key, value in order.conf.items() if spark.conf.get(key, None) != value)
    if unheeded:
        raise SystemExit(
            f"InvalidPipelineError: {', '.join(unheeded)} cannot be set for one job on a warm server: "
            "start the server with it, or run this pipeline by spark-submit"
        )


def _show(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
    """Print progress as Spark's own console does."""
    under_way = [stage for stage in stages or () if not stage.done and stage.num_completed_tasks < stage.num_tasks]
    if under_way and not done:
        stage = under_way[0]
        bar = f"[Stage {stage.stage_id}:> ({stage.num_completed_tasks} + {inflight_tasks}) / {stage.num_tasks}]"
        print(f"\r{bar}\r", end="", file=sys.stderr, flush=True)


def main(order: str) -> None:
    """Do what an order says, a `ConnectedOrder` as JSON."""
    told = ConnectJobSpec.model_validate_json(order)
    os.environ.update(told.environment)
    if told.where:
        os.chdir(told.where)
    if told.program:
        run(told)
    else:
        release(told, told.session)
