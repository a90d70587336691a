"""Settings: everything that differs between a laptop and a cluster, by environment variable.

`.env.example` documents each variable. Sources, the first that sets a variable wins: the process's
environment, `.env` in the working directory, the file of the running local stack, the default.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ByteSize, Field, ValidationError, ValidationInfo, field_validator

from sluice.base_model import Model
from sluice.environment_files import DEFAULT_HOME, given_environment, stack_environment
from sluice.errors import BadEnvironment
from sluice.identifiers import spark_queue
from sluice.job_environment import names_problem
from sluice.lineage.identity import parse_parent

INSTALLATION_PATTERN = r"[A-Za-z0-9_.-]{1,100}"
_LONGEST = 100 * 365 * 86400
"""In seconds."""


class Settings(Model):
    """The settings of one process. Each field is the environment variable of its name in capitals."""

    # --- First: what a first user sets. `.env.example` has the same groups, in the same order. ---
    slack_token: str = Field(default="", repr=False)
    slack_channel: str = ""
    nessie_uri: str = "http://127.0.0.1:19120/api/v2"
    warehouse: str = ""
    """Where new tables are written; by default in LAKE_BUCKET, else in the folder `lake` of the home."""
    lake_bucket: str = ""
    """The bucket of S3 that holds the lake, where WAREHOUSE is not set."""

    # --- Advanced: the local installation ---
    sluice_home: Path = DEFAULT_HOME
    """The folder of tools, logs and the local lake."""
    sluice_keep_run_files: float = Field(default=30 * 86400.0, ge=0)
    """Seconds after which a worker removes the logs and job files of a run that ended; 0 means never."""
    sluice_installation: str = Field(default="", pattern=f"^({INSTALLATION_PATTERN})?$")
    """The id of this installation: several that share a catalog have one each; empty means that of the home."""
    temporal_ui: str = "http://127.0.0.1:8233"
    """Where the Temporal Web UI is, for links."""

    # --- Advanced: the catalog and the object store ---
    catalogue: Literal["nessie", "iceberg"] = "nessie"
    """The catalog: Nessie, or any Iceberg catalog, beside whose tables Sluice keeps branches and commits."""
    nessie_writer_token_file: str = ""
    """The file with the token of Spark jobs, if Nessie requires one."""
    nessie_publisher_token_file: str = ""
    """The file with the token of the worker, which creates, merges and deletes branches."""
    sluice_main: str = "main"
    """The branch that readers read."""
    sluice_catalog: str = Field(default_factory=lambda data: data["catalogue"], pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The name of the catalog in Spark; a JDBC catalog keeps the tables of each name apart."""
    iceberg_type: Literal["sql", "rest", "glue", "hive"] = "sql"
    """The kind of Iceberg catalog, with CATALOGUE=iceberg: `sql` is a JDBC catalog in a database."""
    iceberg_uri: str = Field(default="", repr=False)
    """Its address, as PyIceberg has it; empty means a database in a file of the home, or Amazon's Glue."""
    iceberg_properties_file: str = ""
    """A file with further properties of the catalog, such as credentials, one `key=value` in a line."""
    iceberg_commits_many_tables: Literal["", "one by one", "checked", "atomic"] = ""
    """What is known of a REST server's commits to many tables; empty means what the server says that it can do."""
    aws_endpoint_url_s3: str = ""
    """An S3-compatible store other than Amazon's. Credentials are read as the AWS SDKs read them."""
    aws_region: str = "us-east-1"

    # --- Advanced: Spark ---
    spark_master: str = "local[*]"
    spark_engine: Literal["submit", "connect"] = "submit"
    """What runs Spark jobs: an application for each by spark-submit, or sessions on a Spark Connect server."""
    spark_connect_url: str = Field(default="", pattern=r"^(sc://\S+)?$", repr=False)
    """The Spark Connect server, as `sc://HOST:PORT`; empty means one that the worker starts and keeps warm."""
    spark_deploy_mode: Literal["client", "cluster"] = "client"
    """Where drivers run: beside the worker, or on the cluster of YARN or Kubernetes."""
    spark_driver_memory: str = Field(default="", pattern=r"^(\d+[mgMG])?$")
    """The heap of each driver; empty means that those of a worker share half of the machine's memory."""
    spark_slots: int = Field(default=0, ge=0)
    """How many Spark jobs a worker runs at a time; 0 means as many as there are processors."""
    spark_packages: str = ""
    """More jars for Spark, as Maven coordinates or paths, separated by commas."""
    spark_properties_file: str = ""
    """More Spark configuration for every job, as a properties file."""

    sluice_job_environment: str = ""
    """Further environment variables of the worker that Spark jobs inherit: names, separated by commas."""

    # --- Advanced: the audit of rows ---
    sluice_scan_engine: Literal["auto", "spark"] = "auto"
    """The engine that scans rows: DuckDB where it gives Spark's answers and Spark elsewhere, or always Spark."""
    sluice_scan_bytes: ByteSize = ByteSize(8 * 1024**3)
    """Above this size of data files, rows are scanned by Spark."""
    sluice_scan_memory: str = Field(default="2GB", pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$")
    """How much memory DuckDB may use for an audit, or for a query, before it spills to disk."""

    # --- Advanced: workers ---
    sluice_task_queue: str = "sluice"
    """The task queue that command line and worker share; activities that run Spark use it with `-spark` appended."""
    sluice_worker_role: Literal["all", "control", "spark"] = "all"
    """What this worker does: everything, everything but Spark, or Spark alone."""
    sluice_build_id: str = ""
    """The version of this worker; with one, a run stays with the version that it started with."""
    sluice_shutdown_timeout: float = Field(default=5.0, ge=0)
    """Seconds that a stopping worker gives its activities to finish, before it ends its Spark jobs."""

    # --- Advanced: time-outs, in seconds ---
    sluice_heartbeat_timeout: float = Field(default=15.0, ge=1)
    """Without a heartbeat for this long, a worker counts as dead."""
    sluice_open_timeout: float = Field(default=60.0, ge=1)
    """How long the catalog may be unavailable when a run of a person starts."""
    sluice_step_timeout: float = Field(default=24 * 3600.0, ge=1)
    """How long a service may be unavailable in the middle of a run."""
    sluice_wait_timeout: float = Field(default=24 * 3600.0, ge=1)
    """How long a run repeats attempts that are lost with workers and services, and waits for a Spark worker."""
    sluice_activity_timeout: float = Field(default=180.0, ge=1)
    """How long one try of an activity on the catalog may take, before another worker tries."""

    # --- Advanced: approvals and encryption ---
    sluice_approval_key_file: str = ""
    """The file with the private key that signs this person's decisions."""
    sluice_approvers_file: str = ""
    """The file that lists approvers, each with a public key; only without this setting decisions need no signature."""
    sluice_require_approval: str = ""
    """Tables that need approval whatever a pipeline says, as `finance.*=2, nyc.flights`."""
    sluice_codec_key_file: str = ""
    """The file with the keys that encrypt what Temporal stores."""
    sluice_codec_token_file: str = ""
    """The file with the token that the codec server asks for; without it the server makes one when it starts."""

    # --- Advanced: the reaper ---
    sluice_reap_every: float = Field(default=900.0, ge=0)
    """How often the reaper runs, in seconds; 0 means never."""
    sluice_reap_grace: float = Field(default=3600.0, ge=0)
    """A branch with a commit within so many seconds is left alone by the reaper."""

    # --- Advanced: files that arrive ---
    sluice_arrival_runs: int = Field(default=8, ge=1, le=1000)
    """How many runs the landing zones of the installation have at a time, all together."""
    sluice_events_address: str = Field(default="", pattern=r"^(\S+:\d{1,5})?$")
    """Where a worker takes notifications of object stores by HTTP, as `127.0.0.1:7099`; empty means nowhere."""
    sluice_events_token_file: str = ""
    """The file with the token that such requests bring; needed where other machines reach the address."""
    sluice_events_queue: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """The queue of SQS that a worker takes notifications from, as its URL; empty means none."""

    # --- Advanced: registration after a publish ---
    sluice_targets_file: str = ""
    """The file that lists the targets at which publications are registered."""
    sluice_check_registrations_every: float = Field(default=3600.0, ge=0)
    """How often the tables of targets are compared with main, in seconds; 0 means never."""

    # --- Advanced: logs, metrics, traces, Slack's address ---
    sluice_log_format: Literal["text", "json"] = "text"
    sluice_metrics_address: str = Field(default="", pattern=r"^(\S+:\d+)?$")
    """Where a worker serves metrics for Prometheus, as `127.0.0.1:9464`; empty means nowhere."""
    sluice_traces: str = ""
    """Where traces are sent, as an OTLP endpoint over HTTP: `http://127.0.0.1:4318/v1/traces`; empty means nowhere."""
    slack_api_url: str = "https://slack.com/api/"

    # --- Advanced: OpenLineage, by the names that its clients use ---
    openlineage_url: str = Field(default="", pattern=r"^(https?://\S+)?$", repr=False)
    """Where OpenLineage events of runs are sent; empty, and without a configuration file, means nowhere."""
    openlineage_endpoint: str = "api/v1/lineage"
    openlineage_api_key: str = Field(default="", repr=False)
    openlineage_config: str = ""
    """A configuration file of OpenLineage's Python client, other than `openlineage.yml` in the working directory."""
    openlineage_namespace: str = Field(default="sluice", min_length=1)
    """The namespace of pipelines as OpenLineage jobs."""
    openlineage_disabled: bool = False
    openlineage_parent_id: str = ""
    """The OpenLineage run that starts runs from here, as `NAMESPACE/JOB/RUN_ID`."""

    @field_validator("*")
    @classmethod
    def _is_finite(cls, value: object) -> object:
        if isinstance(value, float) and not value <= _LONGEST:
            raise ValueError(f"{value} is too long: write seconds, at most {_LONGEST:,} (a hundred years)")
        return value

    @field_validator("nessie_uri")
    @classmethod
    def _v2(cls, uri: str) -> str:
        if not uri.startswith(("http://", "https://")) or not uri.rstrip("/").endswith("/api/v2"):
            raise ValueError(f"{uri!r} is not the address of Nessie's API: it must end in /api/v2")
        return uri.rstrip("/")

    @field_validator("spark_deploy_mode")
    @classmethod
    def _deployable(cls, mode: str, info: ValidationInfo) -> str:
        master = str(info.data.get("spark_master"))
        if mode == "cluster" and not master.startswith(("yarn", "k8s://")):
            raise ValueError(
                f"SPARK_MASTER={master} cannot run the driver of a Python job: cluster mode needs yarn or k8s://HOST"
            )
        if mode == "cluster" and info.data.get("spark_engine") == "connect":
            raise ValueError("a Spark Connect server has no drivers per job: cluster mode needs SPARK_ENGINE=submit")
        return mode

    @field_validator("openlineage_parent_id")
    @classmethod
    def _is_run(cls, parent: str) -> str:
        parse_parent(parent)
        return parent

    @field_validator("sluice_job_environment")
    @classmethod
    def _may_be_given(cls, names: str) -> str:
        if why := names_problem(_split(names)):
            raise ValueError(why)
        return names

    @property
    def job_variables(self) -> list[str]:
        """The further environment variables that Spark jobs inherit."""
        return _split(self.sluice_job_environment)

    @property
    def spark_queue(self) -> str:
        """The task queue of activities that run Spark: they wait there until a worker has room for one more."""
        return spark_queue(self.sluice_task_queue)

    @property
    def slots(self) -> int:
        """How many Spark jobs a worker runs at a time."""
        return self.spark_slots or os.cpu_count() or 1

    @property
    def lake(self) -> str:
        """The warehouse as an absolute location."""
        if not self.warehouse and self.lake_bucket:
            return f"s3://{self.lake_bucket.removeprefix('s3://').strip('/')}/warehouse"
        if not self.warehouse:
            return (self.sluice_home / "lake").absolute().as_uri()
        return self.warehouse if "://" in self.warehouse else Path(self.warehouse).absolute().as_uri()

    @property
    def catalog_uri(self) -> str:
        """The address of the Iceberg catalog; by default that of a database in a file of the home."""
        if self.iceberg_uri or self.iceberg_type != "sql":
            return self.iceberg_uri
        return f"sqlite:///{self.sluice_home.absolute()}/iceberg/catalog.db"

    @property
    def runs(self) -> Path:
        """Where each run keeps its logs."""
        return self.sluice_home.absolute() / "runs"


def read_environment() -> dict[str, str]:
    """Read the variables of the environment, of `.env` and of the local stack; the first of them wins.

    Raises:
        BadEnvironment: `.env` cannot be read.
    """
    given = given_environment()
    return {**stack_environment(given), **given}


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Build the settings from environment variables.

    Raises:
        BadEnvironment: the value of a variable is not valid.
    """
    fields = {name: environment[name.upper()] for name in Settings.model_fields if name.upper() in environment}
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        problems = (
            f"{str(e['loc'][0]).upper()}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
            if e["type"] != "default_factory_not_called"
        )  # a default that another wrong value would give
        raise BadEnvironment("; ".join(problems)) from error


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
