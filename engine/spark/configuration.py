"""The Spark configuration of jobs: the properties of applications, and those that bind a session to its branch.

Fencing: a pipeline cannot change the properties that bind a session. The session's catalog is on the branch of the
attempt, each snapshot carries the run and attempt, Iceberg deletes no file (ADR 28), and YARN starts a driver only
once. The catalog's own configuration comes from the port for catalogs (`lakehouse/catalog.py`), as `SparkJob.catalog`.
"""

from collections.abc import Mapping
from pathlib import Path

from engine.job import SparkJob
from engine.private_files import write_private
from engine.spark.jars import added_coordinates, added_jars, class_path, has_s3
from engine.spark.memory import driver_memory
from sluice.contracts.references import LineageParent
from sluice.lineage.identity import lineage_run_id
from sluice.pipeline.table_properties import DELETING_PROPERTIES
from sluice.publishing.commit_properties import ATTEMPT, RUN_ID, SNAPSHOT_PROPERTY
from sluice.publishing.load_properties import PARTITION_MARK, PIPELINE_MARK
from sluice.setting_groups import SparkJobSettings, SparkSettings, StorageSettings

_STRICT = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # else Spark does not notice malformed rows
    "spark.sql.codegen.hugeMethodLimit": "8000",  # the JVM never compiles a larger method, which then runs slowly
    # The limits that `sluice/sql/validation.py` sets for SQL: no paths as tables, and no variables in a text.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}
IN_UTC = {
    f"{process}.TZ": "UTC" for process in ("spark.executorEnv", "spark.yarn.appMasterEnv", "spark.kubernetes.driverEnv")
}
"""Configuration that gives the zone UTC to processes on other machines: Spark reads times of ORC in that of the JVM."""
_WITHOUT_LINES = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""PySpark else calls the JVM several times per expression, to record a source line that errors would name."""
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_EXCLUDED_RULES = (
    # This rule would make Iceberg commit a DELETE of whole files without the properties of the session.
    "org.apache.spark.sql.execution.datasources.v2.OptimizeMetadataOnlyDeleteFromTable",
    # If only the first rule were off, this rule would make a DELETE with an always true condition delete nothing.
    "org.apache.spark.sql.catalyst.optimizer.PruneFilters",
)
"""Rules of Spark's optimizer that are off in the sessions of jobs."""
UNREACHABLE_CATALOG = "unreachable"
"""Name of the catalog in the warm-up job that cannot be reached."""
_SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_DRIVER_PATH = "spark.driver.extraClassPath"
_PACKAGES = "spark.jars.packages"
_LINEAGE_LISTENER = "OpenLineageSparkListener"
_BULK_DELETES = "iceberg.hadoop.delete-file-parallelism"
"""Number of threads that delete files in bulk for Iceberg in Hadoop's file systems. With 0 threads, no bulk deletion
works: commits warn that earlier metadata files stay, maintenance fails, and the files of a failed task stay until
garbage collection. Iceberg still deletes single files, but only files that the same commit made. Source: `HadoopFileIO`
and `CatalogUtil.deleteFiles` of Iceberg 1.12."""


def application(
    settings: SparkJobSettings, folder: Path, conf: Mapping[str, str] | None = None, drivers: int = 1
) -> dict[str, str]:
    """Return the configuration with which a Spark application starts, the same for all branches.

    Args:
        conf: configuration of the pipeline.
        drivers: maximum number of such applications that the worker runs at once.
    """
    from_pipeline = conf or {}
    installed = class_path(settings.storage)
    local = settings.spark.spark_master.startswith("local")
    in_cluster = settings.spark.spark_deploy_mode == "cluster"  # the driver sees no file of this machine
    memory = settings.spark.spark_driver_memory if in_cluster else driver_memory(settings.spark, drivers)
    jars = [*([] if local else installed), *added_jars(settings.spark), *_split(from_pipeline.get("spark.jars"))]
    configuration = {
        "spark.master": settings.spark.spark_master,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true",
        "spark.log.level": "WARN",
        "spark.sql.defaultCatalog": settings.catalog_name,
        **_properties_file(settings.spark.spark_properties_file),
        **from_pipeline,
        # A pipeline cannot set the following, since a safe publication depends on it.
        "spark.submit.deployMode": settings.spark.spark_deploy_mode,
        "spark.local.dir": "" if in_cluster else str(folder / "scratch"),
        "spark.sql.warehouse.dir": "scratch" if in_cluster else str(folder / "scratch"),
        # The driver has these jars from its start, so that the class-data archive contains their classes.
        _DRIVER_PATH: ":".join([*([] if in_cluster else installed), *filter(None, [from_pipeline.get(_DRIVER_PATH)])]),
        "spark.jars": ",".join(jars),
        _PACKAGES: ",".join([*added_coordinates(settings.spark), *_split(from_pipeline.get("spark.jars.packages"))]),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.yarn.maxAppAttempts": "1",
        f"spark.hadoop.{_BULK_DELETES}": "0",
    }
    return {key: value for key, value in configuration.items() if value != ""}


def session(settings: SparkJobSettings, job: SparkJob) -> dict[str, str]:
    """Return the configuration that a pipeline cannot change: a session's branch, run, attempt and semantics."""
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    configuration = {
        _EXCLUDED: ",".join([*_EXCLUDED_RULES, *_split(job.conf.get(_EXCLUDED))]),
        prefix: _SPARK_CATALOG,
        f"{prefix}.warehouse": settings.storage.lake,
        f"{prefix}.cache-enabled": "false",
        f"{prefix}.hadoop.{_BULK_DELETES}": "0",
        **{f"{prefix}.table-override.{key}": "false" for key in DELETING_PROPERTIES},
        **job.catalog,
        **_iceberg_s3(settings.storage, prefix),
        **(_STRICT if job.built_in else {}),
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        SNAPSHOT_PROPERTY + RUN_ID: job.run_id,
        SNAPSHOT_PROPERTY + ATTEMPT: str(job.attempt),
        SNAPSHOT_PROPERTY + PIPELINE_MARK: job.pipeline if job.partition else "",
        SNAPSHOT_PROPERTY + PARTITION_MARK: job.partition,
    }
    return {key: value for key, value in configuration.items() if value != ""}


def properties(settings: SparkJobSettings, job: SparkJob) -> dict[str, str]:
    """Return the complete configuration of a job that runs as an application of its own."""
    shared = application(settings, job.folder, job.conf, settings.spark.slots)
    return {
        **_lineage_parent(settings.lineage_namespace, job, shared),
        **(_WITHOUT_LINES if job.built_in else {}),
        **shared,
        "spark.app.name": f"sluice {job.branch}",
        **session(settings, job),
        **hadoop_s3(settings.storage),
        **(IN_UTC if job.built_in else {}),
    }


def _lineage_parent(namespace: str, job: SparkJob, configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration that makes OpenLineage's Spark listener name the run as the parent of its events.

    Empty without this listener, since nothing else reads these properties. Properties that the given configuration sets
    are kept.
    """
    if not job.pipeline or _LINEAGE_LISTENER not in configuration.get("spark.extraListeners", ""):
        return {}
    own = LineageParent(namespace=namespace, name=job.pipeline, run_id=lineage_run_id(job.run_id))
    named = {"parent": own, "rootParent": job.lineage_root or own}
    return {
        f"spark.openlineage.{prefix}{key}": value
        for prefix, run in named.items()
        for key, value in (("JobNamespace", run.namespace), ("JobName", run.name), ("RunId", run.run_id))
    }


def has_lineage_listener(settings: SparkSettings) -> bool:
    """Return True if OpenLineage's Spark listener is configured for every application."""
    return _LINEAGE_LISTENER in _properties_file(settings.spark_properties_file).get("spark.extraListeners", "")


def write_properties(file: Path, properties: Mapping[str, str]) -> Path:
    """Write properties to a file that only its owner can read, and return the file."""
    return write_private(file, "".join(f"{key} {_escaped(value)}\n" for key, value in properties.items()))


def hadoop_s3(settings: StorageSettings) -> dict[str, str]:
    """Return the configuration with which Spark reads S3; empty unless the jars for S3 are installed (`make s3`)."""
    if not has_s3(settings):
        return {}
    configuration = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint.region": settings.aws_region,
    }
    if settings.aws_endpoint_url_s3:
        configuration |= {
            "spark.hadoop.fs.s3a.endpoint": settings.aws_endpoint_url_s3,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    return configuration


def warm_up_catalogs(folder: Path, unreachable: Mapping[str, str]) -> dict[str, str]:
    """Return the catalogs of the warm-up job: one with tables in a folder, and one that cannot be reached.

    Args:
        unreachable: the configuration of the second catalog, of the kind that jobs use, named `UNREACHABLE_CATALOG`.
    """
    local, remote = "spark.sql.catalog.warm_up", f"spark.sql.catalog.{UNREACHABLE_CATALOG}"
    return {
        local: _SPARK_CATALOG,
        f"{local}.type": "hadoop",
        f"{local}.warehouse": (folder / "lake").as_uri(),
        remote: _SPARK_CATALOG,
        f"{remote}.warehouse": (folder / "lake").as_uri(),
        **unreachable,
    }


def _iceberg_s3(settings: StorageSettings, prefix: str) -> dict[str, str]:
    """Return the configuration with which Iceberg reads and writes S3; empty unless the jars for S3 are installed."""
    if not has_s3(settings):
        return {}
    configuration = {f"{prefix}.client.region": settings.aws_region, f"{prefix}.s3.delete-enabled": "false"}
    if settings.lake.startswith("s3"):
        # Not the FileIO of S3, since metadata that only one job sees is in local files.
        configuration[f"{prefix}.io-impl"] = "org.apache.iceberg.io.ResolvingFileIO"
    if settings.aws_endpoint_url_s3:
        configuration |= {
            f"{prefix}.s3.endpoint": settings.aws_endpoint_url_s3,
            f"{prefix}.s3.path-style-access": "true",
        }
    return configuration


def _properties_file(path: str) -> dict[str, str]:
    if not path:
        return {}
    lines = (line.strip() for line in Path(path).read_text().splitlines())
    pairs = (line.split(None, 1) if "=" not in line.split(None, 1)[0] else line.split("=", 1)
             for line in lines if line and not line.startswith("#"))  # fmt: skip
    return {pair[0].strip(): pair[1].strip() if len(pair) > 1 else "" for pair in pairs}


def _split(value: str | None) -> list[str]:
    return [part for part in (value or "").split(",") if part]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
