"""The `spark-submit` command of a job, and its environment variables."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from engine.job import SparkJob
from engine.private_files import private_folder
from engine.spark.configuration import properties, write_properties
from engine.spark.jars import has_s3
from sluice.job_environment import job_environment
from sluice.setting_groups import SparkJobSettings

SPARK_HOME = Path(pyspark.__file__).resolve().parent
CODE_ROOT = Path(__file__).resolve().parent.parent.parent
WARM_UP = CODE_ROOT / "spark_jobs" / "warm_up.py"
"""The program of a job that uses a little of everything, so that it loads the classes that other jobs need."""
_OPTIONS = "SPARK_SUBMIT_OPTS"
SMALL_INPUT = 64 * 2**20
"""Input size, in bytes, below which a job ends before the JVM's second compiler pays for itself (ADR 17)."""
FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
"""JVM option that turns the second compiler off. An archive made with it also serves a JVM with both compilers, and
costs a third less to make."""


def command(settings: SparkJobSettings, job: SparkJob, more: Mapping[str, str] | None = None) -> list[str]:
    """Write the job's configuration to its folder, readable only by its owner, and return the command.

    Args:
        more: configuration in addition to that of every job.
    """
    private_folder(job.folder / "scratch")
    file = write_properties(job.folder / "spark.properties", {**properties(settings, job), **(more or {})})
    return submit(file, str(job.program), *job.args)


def submit(properties_file: Path, *arguments: str) -> list[str]:
    """Return the command that starts a Spark application."""
    return [str(SPARK_HOME / "bin" / "spark-submit"), "--properties-file", str(properties_file), *arguments]


def environment(settings: SparkJobSettings, java: Path, options: str = "", *, built_in: bool = True) -> dict[str, str]:
    """Return the environment of a Spark process.

    It contains those variables of the worker that `sluice/job_environment.py` lists, this Python, the given Java, and
    for built-in jobs Sluice's modules on the path and the time zone UTC. Programs keep the zone of the machine.

    Args:
        options: options for the JVM of the driver, added to those of the worker's own environment.
    """
    with_s3 = has_s3(settings.storage) or settings.storage.lake.startswith("s3")
    inherited = job_environment(os.environ, settings.spark.job_variables, with_s3=with_s3)
    local = settings.spark.spark_master.startswith("local")
    options = " ".join(filter(None, [inherited.get(_OPTIONS), options]))
    return {
        **inherited,
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **({_OPTIONS: options} if options else {}),
        **({"PYTHONPATH": str(CODE_ROOT), "TZ": "UTC"} if built_in else {}),
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if local else {}),
    }


def compiler_option(job: SparkJob) -> str:
    """Return the JVM option that turns the second compiler off if the job's input is known to be small."""
    return FIRST_COMPILER if job.input_bytes is not None and job.input_bytes < SMALL_INPUT else ""
