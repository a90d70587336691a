"""From settings to a `spark-submit` command: the catalogue that the job sees is on the branch already."""

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from sluice.certificate import ATTEMPT_MARK, RUN_MARK, SNAPSHOT_PROPERTY
from sluice.errors import BadEnvironment
from sluice.secrets import PRIVATE, read_secret
from sluice.settings import Settings

_JARS = "jars"
_STRICT = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # else a broken row passes unseen
}
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_UNMARKED = "org.apache.spark.sql.execution.datasources.v2.OptimizeMetadataOnlyDeleteFromTable"
"""A DELETE of whole files would commit by a path of Iceberg's that puts no marks on its snapshot."""
_INTERNAL = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class SparkJob:
    """One Spark job on one branch."""

    program: Path
    folder: Path
    """The job's own folder, for its configuration, scratch space and log."""
    branch: str
    at: str | None = None
    """Pin the branch to this hash: the job can read it, and cannot write."""
    run_id: str = ""
    attempt: int = 0
    args: list[str] = field(default_factory=list)
    conf: Mapping[str, str] = field(default_factory=dict)
    """Configuration of the pipeline's own."""
    ours: bool = True
    """Whether it is one of Sluice's jobs. A user's program keeps the semantics that it was written for."""


def jar_files(settings: Settings) -> list[str]:
    """Return the jars that every job needs: Iceberg with its Nessie catalogue, and what settings add."""
    bundled = [*_jars(settings, "spark"), *_jars(settings, "s3")]
    return [*bundled, *(part for part in settings.spark_packages.split(",") if part.endswith(".jar"))]


def _jars(settings: Settings, purpose: str) -> list[str]:
    return sorted(str(jar) for jar in (settings.sluice_home.absolute() / _JARS / purpose).glob("*.jar"))


def require_s3(settings: Settings, *places: str) -> None:
    """Make sure that places on S3 can be reached.

    Raises:
        BadEnvironment: one is on S3, and the jars for it were not installed.
    """
    wanted = [place for place in places if place.startswith(("s3://", "s3a://"))]
    if wanted and not _jars(settings, "s3"):
        raise BadEnvironment(f"{wanted[0]} is on S3, and this worker has no jars for it: install them with `make s3`")


def properties(settings: Settings, job: SparkJob) -> dict[str, str]:
    """Return the whole Spark configuration of a job, as one mapping."""
    catalogue = f"spark.sql.catalog.{settings.sluice_catalog}"
    found = {
        "spark.master": settings.spark_master,
        "spark.submit.deployMode": "client",
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true",
        "spark.log.level": "WARN",
        "spark.sql.defaultCatalog": settings.sluice_catalog,
        **_properties_file(settings.spark_properties_file),
        **job.conf,
        # From here on nothing is for others to set: a safe publish rests on it.
        "spark.app.name": f"sluice {job.branch}",
        "spark.local.dir": str(job.folder / "scratch"),
        "spark.sql.warehouse.dir": str(job.folder / "scratch"),
        "spark.jars": ",".join([*jar_files(settings), *_listed(job.conf.get("spark.jars"))]),
        _EXCLUDED: ",".join([_UNMARKED, *_listed(job.conf.get(_EXCLUDED))]),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalogue: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalogue}.catalog-impl": "org.apache.iceberg.nessie.NessieCatalog",
        f"{catalogue}.uri": settings.nessie_uri,
        f"{catalogue}.ref": job.branch,
        f"{catalogue}.warehouse": settings.lake,
        f"{catalogue}.cache-enabled": "false",
        **_identity(settings, catalogue),
        **_s3(settings, catalogue),
        **(_STRICT if job.ours else {}),
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.yarn.maxAppAttempts": "1",
        SNAPSHOT_PROPERTY + RUN_MARK: job.run_id,
        SNAPSHOT_PROPERTY + ATTEMPT_MARK: str(job.attempt),
    }
    if job.at:
        found[f"{catalogue}.ref.hash"] = job.at
    if settings.spark_packages:
        coordinates = [p for p in settings.spark_packages.split(",") if not p.endswith(".jar")]
        found["spark.jars.packages"] = ",".join(coordinates)
    return {key: value for key, value in found.items() if value != ""}


def command(settings: Settings, job: SparkJob) -> list[str]:
    """Write the job's configuration into its folder, for its owner's eyes alone, and return the command."""
    (job.folder / "scratch").mkdir(parents=True, exist_ok=True)
    file = job.folder / "spark.properties"
    file.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
    file.write_text("".join(f"{key} {_escaped(value)}\n" for key, value in properties(settings, job).items()))
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    return [str(submit), "--properties-file", str(file), str(job.program), *job.args]


def environment(settings: Settings, java: Path, *, ours: bool = True) -> dict[str, str]:
    """Return the environment of a job: this Python, that Java, and for our jobs Sluice's domain to import from."""
    inherited = {key: value for key, value in os.environ.items() if key not in PRIVATE}
    local = settings.spark_master.startswith("local")
    return {
        **inherited,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **({"PYTHONPATH": str(_INTERNAL)} if ours else {}),
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if local else {}),
    }


def _identity(settings: Settings, catalogue: str) -> dict[str, str]:
    """Return how the job tells Nessie that it is a writer, who may change the branches of attempts alone."""
    token = read_secret(settings.nessie_writer_token_file, "NESSIE_WRITER_TOKEN_FILE")
    if not token:
        return {}
    return {f"{catalogue}.authentication.type": "BEARER", f"{catalogue}.authentication.token": token}


def _s3(settings: Settings, catalogue: str) -> dict[str, str]:
    """Return how Iceberg and Spark's readers get at S3, where the jars for it were installed (`make s3`)."""
    if not _jars(settings, "s3"):
        return {}
    found = {
        f"{catalogue}.client.region": settings.aws_region,
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint.region": settings.aws_region,
    }
    if settings.lake.startswith("s3"):
        found[f"{catalogue}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
    if settings.aws_endpoint_url_s3:
        found |= {
            f"{catalogue}.s3.endpoint": settings.aws_endpoint_url_s3,
            f"{catalogue}.s3.path-style-access": "true",
            "spark.hadoop.fs.s3a.endpoint": settings.aws_endpoint_url_s3,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    return found


def _properties_file(path: str) -> dict[str, str]:
    if not path:
        return {}
    lines = (line.strip() for line in Path(path).read_text().splitlines())
    pairs = (line.split(None, 1) if "=" not in line.split(None, 1)[0] else line.split("=", 1)
             for line in lines if line and not line.startswith("#"))  # fmt: skip
    return {pair[0].strip(): pair[1].strip() if len(pair) > 1 else "" for pair in pairs}


def _listed(value: str | None) -> list[str]:
    return [part for part in (value or "").split(",") if part]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
