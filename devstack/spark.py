"""What set-up does for Spark, so that a job starts sooner."""

from pathlib import Path

from engine.spark.class_data_archive import create_archive, find_archive
from engine.spark.configuration import UNREACHABLE_CATALOG
from engine.spark.java import find_java
from lakehouse.open_catalog import unreachable_properties
from sluice.errors import BadEnvironment
from sluice.settings import Settings


def prepare_spark(home: Path) -> None:
    """Make the class-data archive for this Java and these jars; without one, Spark only starts slower."""
    settings, java = Settings(sluice_home=home), find_java()
    if find_archive(settings, java):
        return
    print("Running a Spark job once, so that later ones start in half the time (half a minute)", flush=True)
    try:
        create_archive(settings, java, unreachable_properties(UNREACHABLE_CATALOG))
    except BadEnvironment as error:
        print(f"{error}. Spark starts slower without.", flush=True)
