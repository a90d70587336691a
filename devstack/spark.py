"""Prepare Spark after the set-up, so that a job starts sooner."""

import os
import sys
from pathlib import Path

from devstack.set_up.spark_archive import SparkArchive
from engine.spark.class_data_archive import create_archive
from engine.spark.configuration import UNREACHABLE_CATALOG
from engine.spark.java import find_java
from lakehouse.open_catalog import unreachable_properties
from sluice.errors import BadEnvironment
from sluice.settings import Settings

_LOW_PRIORITY = 10


def prepare_spark(root: Path, home: Path) -> None:
    """Create the class-data archive for this Java and these jars. Without it, Spark works, but starts more slowly."""
    try:
        create_archive(
            Settings.of(sluice_home=home).spark_jobs, find_java(), unreachable_properties(UNREACHABLE_CATALOG)
        )
    except BadEnvironment as error:
        print(f"Note: {error}. Spark starts slower without it.", flush=True)
    SparkArchive(root, home).stamp.write()


if __name__ == "__main__":
    os.nice(_LOW_PRIORITY)
    prepare_spark(*map(Path, sys.argv[1:]))
