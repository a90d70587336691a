"""Check the parts that a worker needs to run Spark: Java, jars, free disk space, and the settings of Spark."""

import shutil
from dataclasses import dataclass

from temporalio import activity

from activities.installation.examinations import NeedsRemedy, examine
from activities.run.job_folder import MIN_FREE_BYTES
from engine.private_files import private_folder
from engine.spark.jars import class_path, require_s3
from engine.spark.java import find_java, java_version
from sluice.contracts.examination import Examination, ExamineSparkInput, Finding
from sluice.setting_groups import SparkJobSettings
from sluice.sizes import format_count, format_size

_LITTLE_SPACE = 5 * 2**30
"""Minimum free disk space without a warning, in bytes. With less, a large job may fail."""


@dataclass(frozen=True)
class ExamineSparkActivity:
    """The activity `examine_spark`. Needs the settings of Spark jobs."""

    settings: SparkJobSettings

    @activity.defn(name="examine_spark")
    def examine_spark(self, input: ExamineSparkInput) -> Examination:
        """Check each part that this worker needs. A problem of one part does not stop the other checks."""
        return examine({"Java": self._java, "jars": self._jars, "disk": self._disk, "Spark": self._spark})

    def _java(self) -> Finding:
        home = find_java()
        return Finding(part="Java", state="ok", detail=f"Java {java_version(home)} at {home}")

    def _jars(self) -> Finding:
        require_s3(self.settings.storage, self.settings.storage.lake)
        jars = class_path(self.settings.storage)
        if not jars and not self.settings.spark.spark_packages:
            raise NeedsRemedy(
                f"there are no jars for Spark under {self.settings.storage.sluice_home}", "run `make setup`"
            )
        return Finding(
            part="jars", state="ok", detail=f"{format_count(len(jars), 'jar')} in addition to those of Spark"
        )

    def _disk(self) -> Finding:
        folder = private_folder(self.settings.storage.runs)
        free = shutil.disk_usage(folder).free
        detail = f"{format_size(free)} free at {folder}"
        if free < MIN_FREE_BYTES:
            raise NeedsRemedy(f"{detail}: too little to start a job", "make room, or set SLUICE_HOME to a larger disk")
        if free < _LITTLE_SPACE:
            return Finding(part="disk", state="warning", detail=detail, remedy="make room for scratch space and logs")
        return Finding(part="disk", state="ok", detail=detail)

    def _spark(self) -> Finding:
        settings = self.settings
        slots = format_count(settings.spark.slots, "job")
        detail = f"{settings.spark.spark_engine} on {settings.spark.spark_master}, {slots} at a time"
        return Finding(part="Spark", state="ok", detail=detail)
