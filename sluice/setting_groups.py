"""Groups of settings. A part of Sluice gets the group that it needs, not all settings.

Each field comes from the environment variable of the same name in capitals. `.env.example` documents each variable.
"""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import ByteSize, Field, ValidationInfo, field_validator

from sluice.base_model import StrictModel
from sluice.environment_files import DEFAULT_HOME
from sluice.identifiers import spark_queue
from sluice.job_environment import names_problem
from sluice.lineage.identity import parse_parent

INSTALLATION_PATTERN = r"[A-Za-z0-9_.-]{1,100}"
CatalogKind = Literal["nessie", "sql", "rest", "glue", "hive"]
_LONGEST = 100 * 365 * 86400
"""Longest duration in a setting, in seconds."""


class SettingsGroup(StrictModel):
    """A group of settings."""

    @field_validator("*")
    @classmethod
    def _is_finite(cls, value: object) -> object:
        if isinstance(value, float) and not value <= _LONGEST:
            raise ValueError(f"{value} is too long: write seconds, at most {_LONGEST:,} (a hundred years)")
        return value


class StorageSettings(SettingsGroup):
    """The folder of this installation, the lake, and the object store."""

    sluice_home: Path = DEFAULT_HOME
    """Folder of tools, logs and the local lake."""
    sluice_keep_run_files: float = Field(default=30 * 86400.0, ge=0)
    """Seconds after the end of a run until a worker removes its logs and job files; 0 means never."""
    warehouse: str = ""
    """Location of new tables. The default is in LAKE_BUCKET, else in the folder `lake` of the home."""
    lake_bucket: str = ""
    """S3 bucket of the lake. It is used if WAREHOUSE is not set."""
    aws_endpoint_url_s3: str = ""
    """Address of an S3-compatible store other than Amazon's. Credentials are read as the AWS SDKs read them."""
    aws_region: str = "us-east-1"

    @property
    def lake(self) -> str:
        """The warehouse as an absolute location."""
        if not self.warehouse and self.lake_bucket:
            return f"s3://{self.lake_bucket.removeprefix('s3://').strip('/')}/warehouse"
        if not self.warehouse:
            return (self.sluice_home / "lake").absolute().as_uri()
        return self.warehouse if "://" in self.warehouse else Path(self.warehouse).absolute().as_uri()

    @property
    def runs(self) -> Path:
        """Folder with the logs of each run."""
        return self.sluice_home.absolute() / "runs"


class InstallationSettings(SettingsGroup):
    """The names that the command line and the workers share in Temporal."""

    sluice_installation: str = Field(default="", pattern=f"^({INSTALLATION_PATTERN})?$", examples=["team-a"])
    """Id of this installation. Each installation that shares a catalog has its own; empty means the id of the home."""
    sluice_task_queue: str = "sluice"
    """Task queue of command line and worker. Activities that run Spark use it with `-spark` appended."""
    sluice_worker_wait: float = Field(default=10.0, gt=0)
    """Seconds that a command waits for a worker to begin its work. A landing zone has three times as long to answer."""
    temporal_ui: str = "http://127.0.0.1:8233"
    """Address of the Temporal Web UI, for links."""
    sluice_page: str = ""
    """Address of the page, for links in messages and on the terminal; empty means no links to it."""

    def page_of_run(self, workflow_id: str, run_id: str) -> str:
        """Return the address of a run on the page; empty if the address of the page is not set."""
        return f"{self.sluice_page}/runs/{workflow_id}/{run_id}" if self.sluice_page else ""

    @property
    def spark_queue(self) -> str:
        """Task queue of activities that run Spark. They wait there until a worker has a free slot."""
        return spark_queue(self.sluice_task_queue)


def _default_name(given: dict[str, Any]) -> str:
    return "nessie" if given["catalog"] == "nessie" else "iceberg"


class CatalogSettings(SettingsGroup):
    """The catalog of the lake."""

    catalog: CatalogKind = "nessie"
    """Kind of catalog: Nessie, or a kind of Iceberg catalog. `sql` is a JDBC catalog in a database."""
    catalog_name: str = Field(default_factory=_default_name, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", examples=["lake"])
    """Name of the catalog in Spark. A JDBC catalog keeps the tables of each name separate."""
    nessie_uri: str = "http://127.0.0.1:19120/api/v2"
    nessie_writer_token_file: str = ""
    """File with the token of Spark jobs, if Nessie requires one."""
    nessie_publisher_token_file: str = ""
    """File with the token of the worker, which creates, merges and deletes branches."""
    sluice_main: str = "main"
    """Branch that readers read."""
    iceberg_uri: str = Field(default="", repr=False)
    """Address of the Iceberg catalog, as in PyIceberg; empty means a database file in the home, or Amazon's Glue."""
    iceberg_properties_file: str = ""
    """File with further properties of the catalog, such as credentials: one `key=value` per line."""
    iceberg_commits_many_tables: Literal["", "one by one", "checked", "atomic"] = ""
    """Guarantee of a REST server for commits to many tables; empty means the guarantee that the server declares."""

    @field_validator("nessie_uri")
    @classmethod
    def _v2(cls, uri: str) -> str:
        if not uri.startswith(("http://", "https://")) or not uri.rstrip("/").endswith("/api/v2"):
            raise ValueError(f"{uri!r} is not the address of Nessie's API: it must end in /api/v2")
        return uri.rstrip("/")

    @property
    def is_iceberg(self) -> bool:
        """True for an Iceberg catalog, where Sluice itself stores branches and commits."""
        return self.catalog != "nessie"


class SparkSettings(SettingsGroup):
    """Spark, and the jobs that it runs."""

    spark_master: str = "local[*]"
    spark_engine: Literal["auto", "submit", "connect"] = "auto"
    """Engine of Spark jobs: one spark-submit application for each (submit), sessions on a Spark Connect server
    (connect), or such sessions for Sluice's own jobs and spark-submit for users' programs (auto). With a master that
    is not local, auto means submit."""
    spark_connect_url: str = Field(
        default="", pattern=r"^(sc://\S+)?$", repr=False, examples=["sc://spark.example.org:15002"]
    )
    """Spark Connect server, as `sc://HOST:PORT`; empty means one that the worker starts and keeps warm."""
    spark_deploy_mode: Literal["client", "cluster"] = "client"
    """Location of drivers: on the worker's machine, or on the cluster of YARN or Kubernetes."""
    spark_driver_memory: str = Field(default="", pattern=r"^(\d+[mgMG])?$", examples=["4g"])
    """Heap of each driver; empty means that the drivers of a worker share half of the machine's memory."""
    spark_slots: int = Field(default=0, ge=0)
    """Maximum number of Spark jobs that a worker runs at a time; 0 means the number of processors."""
    spark_packages: str = ""
    """Further jars for Spark: Maven coordinates or paths, separated by commas."""
    spark_properties_file: str = ""
    """Properties file with further Spark configuration for every job."""
    sluice_job_environment: str = ""
    """Further environment variables of the worker that Spark jobs inherit: names, separated by commas."""

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

    @field_validator("sluice_job_environment")
    @classmethod
    def _may_be_given(cls, names: str) -> str:
        if why := names_problem(_split(names)):
            raise ValueError(why)
        return names

    @property
    def job_variables(self) -> list[str]:
        """Further environment variables that Spark jobs inherit."""
        return _split(self.sluice_job_environment)

    @property
    def slots(self) -> int:
        """Maximum number of Spark jobs that a worker runs at a time."""
        return self.spark_slots or os.cpu_count() or 1


class ScanSettings(SettingsGroup):
    """The audit of rows."""

    sluice_scan_engine: Literal["auto", "spark"] = "auto"
    """Engine that scans rows: DuckDB if its answers equal Spark's and Spark otherwise, or always Spark."""
    sluice_scan_bytes: ByteSize = ByteSize(8 * 1024**3)
    """Size of data files, in bytes, above which Spark scans the rows."""
    sluice_scan_memory: str = Field(default="2GB", pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$", examples=["2GB"])
    """Memory that DuckDB may use for an audit, a query or a diff, before it spills to disk."""


class WorkerSettings(SettingsGroup):
    """The role and the end of a worker."""

    sluice_worker_role: Literal["all", "control", "spark"] = "all"
    """Work of this worker: everything, everything but Spark, or Spark alone."""
    sluice_build_id: str = ""
    """Version of this worker. With one, a run stays with the version that it started with."""
    sluice_shutdown_timeout: float = Field(default=5.0, ge=0)
    """Seconds that a stopping worker gives its activities to finish, before it ends its Spark jobs."""


class TimeoutSettings(SettingsGroup):
    """Time-outs, in seconds."""

    sluice_heartbeat_timeout: float = Field(default=15.0, ge=1)
    """Seconds without a heartbeat after which a worker counts as dead."""
    sluice_open_timeout: float = Field(default=60.0, ge=1)
    """Seconds for which the catalog may be unavailable when a person starts a run."""
    sluice_step_timeout: float = Field(default=24 * 3600.0, ge=1)
    """Seconds for which a service may be unavailable in the middle of a run."""
    sluice_wait_timeout: float = Field(default=24 * 3600.0, ge=1)
    """Seconds during which a run repeats attempts lost with workers and services, and waits for a Spark worker."""
    sluice_activity_timeout: float = Field(default=180.0, ge=1)
    """Maximum duration of one try of an activity on the catalog, in seconds. After it, another worker tries."""


class ApprovalSettings(SettingsGroup):
    """Approvals: who may give them, and which tables need them."""

    sluice_approval_key_file: str = ""
    """File with the private key that signs this person's decisions."""
    sluice_approvers_file: str = ""
    """File that lists approvers, each with a public key. Decisions need no signature only if it is not set."""
    sluice_require_approval: str = ""
    """Tables that need approval regardless of the pipeline, as `finance.*=2, nyc.flights`."""


class EncryptionSettings(SettingsGroup):
    """Encryption of the data that Temporal stores."""

    sluice_codec_key_file: str = ""
    """File with the keys that encrypt the data that Temporal stores."""
    sluice_codec_token_file: str = ""
    """File with the token that the codec server requires. Without it, the server creates a token at each start."""


class ReaperSettings(SettingsGroup):
    """The reaper, which removes branches of runs that no longer exist."""

    sluice_reap_every: float = Field(default=900.0, ge=0)
    """Seconds between runs of the reaper; 0 means never."""
    sluice_reap_grace: float = Field(default=3600.0, ge=0)
    """Minimum age of a branch's newest commit, in seconds. The reaper ignores younger branches."""


class ArrivalSettings(SettingsGroup):
    """Landing zones, and notifications of files."""

    sluice_arrival_runs: int = Field(default=8, ge=1, le=1000)
    """Maximum number of runs at a time of all landing zones of the installation together."""
    sluice_events_address: str = Field(default="", pattern=r"^(\S+:\d{1,5})?$", examples=["127.0.0.1:8788"])
    """Address on which a worker receives HTTP notifications of object stores, as `127.0.0.1:7099`; empty means none."""
    sluice_events_token_file: str = ""
    """File with the token of these notifications. It is required if other machines can reach the address."""
    sluice_events_queue: str = Field(
        default="", pattern=r"^(https?://\S+)?$", examples=["https://sqs.eu-central-1.amazonaws.com/1/arrivals"]
    )
    """URL of the SQS queue from which a worker reads notifications; empty means none."""


class RegistrationSettings(SettingsGroup):
    """Registration after a publish."""

    sluice_targets_file: str = ""
    """File that lists the targets at which publications are registered."""
    sluice_check_registrations_every: float = Field(default=3600.0, ge=0)
    """Seconds between comparisons of the targets' tables with main; 0 means never."""


class NotificationSettings(SettingsGroup):
    """Messages to people."""

    slack_token: str = Field(default="", repr=False)
    slack_channel: str = ""
    slack_api_url: str = "https://slack.com/api/"
    slack_signing_secret: str = Field(default="", repr=False)
    """Signing secret of the Slack app. With it, messages have buttons that decide, and the page accepts them."""
    sluice_slack_people_file: str = ""
    """File with the people who may decide on Slack: the id of a member and a name on each line."""
    sluice_notifications_file: str = ""
    """File of routes, which say which messages go to which service; without it, all messages go to Slack."""


class TelemetrySettings(SettingsGroup):
    """Logs, metrics and traces."""

    sluice_log_format: Literal["text", "json"] = "text"
    sluice_metrics_address: str = Field(default="", pattern=r"^(\S+:\d+)?$", examples=["127.0.0.1:9464"])
    """Address on which a worker serves metrics for Prometheus, as `127.0.0.1:9464`; empty means none."""
    sluice_traces: str = ""
    """OTLP endpoint over HTTP for traces, as `http://127.0.0.1:4318/v1/traces`; empty means none."""


class LineageSettings(SettingsGroup):
    """OpenLineage, by the names that its clients use."""

    openlineage_url: str = Field(
        default="", pattern=r"^(https?://\S+)?$", repr=False, examples=["https://lineage.example.org"]
    )
    """Address for OpenLineage events of runs. If it is empty and there is no configuration file, no events are sent."""
    openlineage_endpoint: str = "api/v1/lineage"
    openlineage_api_key: str = Field(default="", repr=False)
    openlineage_config: str = ""
    """Configuration file of OpenLineage's Python client, if not `openlineage.yml` in the working directory."""
    openlineage_namespace: str = Field(default="sluice", min_length=1)
    """Namespace of pipelines as OpenLineage jobs."""
    openlineage_disabled: bool = False
    openlineage_parent_id: str = ""
    """OpenLineage run that starts runs from here, as `NAMESPACE/JOB/RUN_ID`."""

    @field_validator("openlineage_parent_id")
    @classmethod
    def _is_run(cls, parent: str) -> str:
        parse_parent(parent)
        return parent


class SparkJobSettings(StrictModel):
    """Everything that the configuration of a Spark job depends on, from several groups."""

    spark: SparkSettings
    storage: StorageSettings
    catalog_name: str
    lineage_namespace: str


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
