"""From a job to a `spark-submit` command, and the environment that it runs in."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from engine.job import SparkJob
from engine.spark.configuration import properties, write_properties
from sluice.secrets import PRIVATE
from sluice.settings import Settings

SPARK_HOME = Path(pyspark.__file__).resolve().parent
INTERNAL = Path(__file__).resolve().parent.parent.parent
REHEARSAL = INTERNAL / "spark_jobs" / "warm_up.py"
"""A job that does a little of everything, so that what comes after it starts sooner."""
_OPTIONS = "SPARK_SUBMIT_OPTS"
SMALL = 64 * 2**20
"""A job that reads fewer bytes than this ends before the JVM's second compiler pays (ADR 16)."""
_QUICK = "-XX:TieredStopAtLevel=1"


def command(settings: Settings, job: SparkJob, more: Mapping[str, str] | None = None) -> list[str]:
    """Write the job's configuration into its folder, for its owner's eyes alone, and return the command.

    Args:
        more: configuration beside what every job of these settings has.
    """
    (job.folder / "scratch").mkdir(parents=True, exist_ok=True)
    file = write_properties(job.folder / "spark.properties", {**properties(settings, job), **(more or {})})
    return submit(file, str(job.program), *job.args)


def submit(properties_file: Path, *words: str) -> list[str]:
    """Return the command that starts an application of Spark."""
    return [str(SPARK_HOME / "bin" / "spark-submit"), "--properties-file", str(properties_file), *words]


def environment(settings: Settings, java: Path, options: str = "", *, ours: bool = True) -> dict[str, str]:
    """Return the environment of a job: this Python, that Java, and for our jobs Sluice's domain to import from.

    Args:
        options: options for the JVM of the driver, after those that the worker's own environment has for it.
    """
    inherited = {key: value for key, value in os.environ.items() if key not in PRIVATE}
    local = settings.spark_master.startswith("local")
    options = " ".join(filter(None, [inherited.get(_OPTIONS), options]))
    return {
        **inherited,
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **({_OPTIONS: options} if options else {}),
        **({"PYTHONPATH": str(INTERNAL)} if ours else {}),
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if local else {}),
    }


def quick_option(job: SparkJob) -> str:
    """Return the JVM option that suits a job of known, small size."""
    return _QUICK if job.bytes is not None and job.bytes < SMALL else ""
