"""The client of one job on Spark Connect: run a program in a session of its own, then release the session.

The program runs as under `spark-submit`: its `SparkSession.builder.getOrCreate()` returns the session, which is already
on the branch of its attempt. The fork server (`engine/process/fork_server.py`) imports this module once, so that jobs
do not spend time on its imports.
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
"""All sessions, kept until the process ends: a garbage-collected session closes its channel while gRPC holds locks."""
_SLUICE_PACKAGES = ("engine", "sluice", "spark_jobs")
_RETRIES = 6
"""Number of retries, over some ten seconds, when the server does not answer. Then the attempt fails."""


def main(specification: str) -> None:
    """Run the job of a specification, or release the job's session if the specification names no program.

    Args:
        specification: a `ConnectJobSpec` as JSON.
    """
    spec = ConnectJobSpec.model_validate_json(specification)
    if spec.working_directory:
        os.chdir(spec.working_directory)
    if spec.program:
        run(spec)
    else:
        release(spec, spec.session)


def run(spec: ConnectJobSpec) -> None:
    """Run the program in its session. In the end, always release the session, and create the file that says so."""
    for session in spec.earlier_sessions:
        release(spec, session)
    spark = connect(spec, spec.session)
    try:
        _configure(spark, spec)
        _clear_what_sessions_share(spark, spec)
        os.environ.update(spec.environment)
        spark.addTag(spec.tag)
        spark.registerProgressHandler(_print_progress)  # type: ignore[arg-type]  # a function is a progress handler
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
    """Interrupt the running operations of a session, and release the session, which ends it for good."""
    spark = connect(spec, session)
    with contextlib.suppress(Exception):  # a server that has ended has no sessions
        spark.interruptTag(spec.tag)
        with contextlib.suppress(Exception):
            _clear_what_sessions_share(spark, spec)
        spark.client.release_session()


def connect(spec: ConnectJobSpec, session: str) -> RemoteSession:
    """Open a session by its id, and make `getOrCreate` return it. The server creates the session on first use."""
    url = spec.url.rstrip("/;")
    os.environ["SPARK_REMOTE"] = f"{url}{';' if ';' in url else '/;'}session_id={session}"
    RemoteSession._default_session = None
    RemoteSession._active_session.session = None
    spark: Any = SparkSession.builder.getOrCreate()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=3000)])
    atexit.unregister(spark.client._cleanup_ml_cache)  # at exit, the session is already released
    _sessions.append(spark)
    remote: RemoteSession = spark
    return remote


def _clear_what_sessions_share(spark: RemoteSession, spec: ConnectJobSpec) -> None:
    """Drop cached data and global views of other sessions, from which Spark would answer queries of this session.

    Spark recomputes a cache that another job is using. Only the worker's own server is cleared.
    """
    if not spec.shared_views:
        return
    spark.catalog.clearCache()
    for row in spark.sql(f"SHOW VIEWS IN {spec.shared_views}").collect():
        if row["namespace"] == spec.shared_views:
            spark.catalog.dropGlobalTempView(row["viewName"])


def _unload_sluice_modules() -> None:
    """Unload Sluice's modules, so that a user's program can import its own modules of the same names."""
    for name in [name for name in sys.modules if name.split(".")[0] in _SLUICE_PACKAGES]:
        del sys.modules[name]


def _module_paths(spec: ConnectJobSpec) -> list[str]:
    """Return the folders in which the program finds modules: for a user's program, the folders without Sluice's."""
    if spec.built_in:
        return sys.path
    hidden = (str(_CODE_ROOT), str(_CODE_ROOT / "spark_jobs"))
    return [*spec.python_paths, *(path for path in sys.path if path not in hidden)]


def _configure(spark: RemoteSession, spec: ConnectJobSpec) -> None:
    """Configure the session.

    Raises:
        SystemExit: the pipeline sets a property that can only be set when a server starts.
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
    """Print progress in the form of Spark's own console."""
    running = [stage for stage in stages or () if not stage.done and stage.num_completed_tasks < stage.num_tasks]
    if running and not done:
        stage = running[0]
        bar = f"[Stage {stage.stage_id}:> ({stage.num_completed_tasks} + {inflight_tasks}) / {stage.num_tasks}]"
        print(f"\r{bar}\r", end="", file=sys.stderr, flush=True)
