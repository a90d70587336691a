"""The client of one job on Spark Connect: run a program in a session of its own, then release the session.

The program runs as `spark-submit` would run it: its `SparkSession.builder.getOrCreate()` returns the session, which is
on the branch of its attempt already. The module is imported by the fork server (`engine/process/fork_server.py`), so
its imports are paid for once and not by each job.
"""

import atexit
import contextlib
import os
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow  # noqa: F401  # slow imports that every job needs
from pyspark.sql import SparkSession
from pyspark.sql.connect import functions  # noqa: F401
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession as RemoteSession

from sluice.contracts.spark_jobs import ConnectJobSpec

_CODE_ROOT = Path(__file__).resolve().parent.parent
_sessions: list[RemoteSession] = []
"""Every session, until the process ends: a session that is collected closes its channel while gRPC holds its locks."""
_SLUICE_PACKAGES = ("engine", "sluice", "spark_jobs")
_RETRIES = 6
"""How often a server that does not answer is tried again, for some ten seconds; then the attempt fails."""


def main(specification: str) -> None:
    """Run the job of a specification, a `ConnectJobSpec` as JSON, or release its session if it names no program."""
    spec = ConnectJobSpec.model_validate_json(specification)
    if spec.working_directory:
        os.chdir(spec.working_directory)
    if spec.program:
        run(spec)
    else:
        release(spec, spec.session)


def run(spec: ConnectJobSpec) -> None:
    """Run the program in its session; release the session whatever happens, and note that in a file."""
    for session in spec.earlier_sessions:
        release(spec, session)
    spark = connect(spec, spec.session)
    try:
        _configure(spark, spec)
        _clear_what_sessions_share(spark, spec)
        os.environ.update(spec.environment)
        spark.addTag(spec.tag)
        spark.registerProgressHandler(_print_progress)  # type: ignore[arg-type]  # a function is one
        sys.argv = [spec.program, *spec.args]
        if not spec.built_in:
            _unload_sluice_modules()
        sys.path[:] = [str(Path(spec.program).parent), *_module_paths(spec)]
        runpy.run_path(spec.program, run_name="__main__")
    finally:
        with contextlib.suppress(Exception):
            _clear_what_sessions_share(spark, spec)
        with contextlib.suppress(Exception):
            spark.client.release_session()
            Path(spec.released_file).touch()


def release(spec: ConnectJobSpec, session: str) -> None:
    """Interrupt what a session still runs on the server, and release it; it cannot be used again."""
    spark = connect(spec, session)
    with contextlib.suppress(Exception):  # a server that has ended holds no session
        spark.interruptTag(spec.tag)
        with contextlib.suppress(Exception):
            _clear_what_sessions_share(spark, spec)
        spark.client.release_session()


def connect(spec: ConnectJobSpec, session: str) -> RemoteSession:
    """Open a session by its id, and make it the one that `getOrCreate` returns; the server creates it on first use."""
    url = spec.url.rstrip("/;")
    os.environ["SPARK_REMOTE"] = f"{url}{';' if ';' in url else '/;'}session_id={session}"
    RemoteSession._default_session = None
    RemoteSession._active_session.session = None
    spark: Any = SparkSession.builder.getOrCreate()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=3000)])
    atexit.unregister(spark.client._cleanup_ml_cache)  # the session is released by then
    _sessions.append(spark)
    remote: RemoteSession = spark
    return remote


def _clear_what_sessions_share(spark: RemoteSession, spec: ConnectJobSpec) -> None:
    """Drop cached data and global views of other sessions: Spark would answer a query of this one from them.

    A cache that another job is using is computed again. Only the server of this worker is cleared.
    """
    if not spec.shared_views:
        return
    spark.catalog.clearCache()
    for row in spark.sql(f"SHOW VIEWS IN {spec.shared_views}").collect():
        if row["namespace"] == spec.shared_views:
            spark.catalog.dropGlobalTempView(row["viewName"])


def _unload_sluice_modules() -> None:
    """Let a user's program import modules of its own that have the names of Sluice's packages."""
    for name in [name for name in sys.modules if name.split(".")[0] in _SLUICE_PACKAGES]:
        del sys.modules[name]


def _module_paths(spec: ConnectJobSpec) -> list[str]:
    """Return the folders of modules: for a user's program, those that it would have without Sluice."""
    if spec.built_in:
        return sys.path
    hidden = (str(_CODE_ROOT), str(_CODE_ROOT / "spark_jobs"))
    return [*spec.python_paths, *(path for path in sys.path if path not in hidden)]


def _configure(spark: RemoteSession, spec: ConnectJobSpec) -> None:
    """Configure the session.

    Raises:
        SystemExit: the pipeline sets what can only be set when a server starts.
    """
    spark.conf._set_all({**spec.conf}, silent=True)
    spark.conf._set_all({**spec.session_conf}, silent=False)
    ignored = sorted(key for key, value in spec.conf.items() if spark.conf.get(key, None) != value)
    if ignored:
        raise SystemExit(
            f"InvalidPipelineError: {', '.join(ignored)} cannot be set for one job on a warm server: "
            "start the server with it, or run this pipeline by spark-submit"
        )


def _print_progress(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
    """Print progress as Spark's own console does."""
    running = [stage for stage in stages or () if not stage.done and stage.num_completed_tasks < stage.num_tasks]
    if running and not done:
        stage = running[0]
        bar = f"[Stage {stage.stage_id}:> ({stage.num_completed_tasks} + {inflight_tasks}) / {stage.num_tasks}]"
        print(f"\r{bar}\r", end="", file=sys.stderr, flush=True)
