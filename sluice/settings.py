"""Settings: everything that differs between a laptop and a cluster, by environment variable.

`.env.example` documents each variable. Sources, the first that says something wins: the process's
environment, `.env` in the working directory, what the running local stack wrote, the default.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from dotenv import dotenv_values
from pydantic import ByteSize, Field, ValidationError, ValidationInfo, field_validator

from sluice.base_model import Model
from sluice.errors import BadEnvironment

HOME = "SLUICE_HOME"
STACK_FILE = "stack.json"
DEFAULT_HOME = Path(__file__).resolve().parent.parent / ".sluice"
"""Beside the code, so that front door and worker find it from wherever they are started."""


class Settings(Model):
    """The settings of one process. Each field is the environment variable of its name in capitals."""

    sluice_home: Path = DEFAULT_HOME
    """Where tools, logs and the local lake are kept."""
    nessie_uri: str = "http://127.0.0.1:19120/api/v2"
    nessie_writer_token_file: str = ""
    """The file with the token that Spark jobs get, where Nessie asks for one."""
    nessie_publisher_token_file: str = ""
    """The file with the token of whoever makes, merges and deletes branches."""
    warehouse: str = ""
    """Where new tables lie; by default the folder `lake` of the home."""
    sluice_catalog: str = Field(default="nessie", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The name of the catalog in Spark."""
    sluice_main: str = "main"
    """The branch that readers read."""
    sluice_task_queue: str = "sluice"
    sluice_spark_queue: str = ""
    """The task queue of what runs Spark; empty means the other one's name and `-spark`."""
    sluice_worker_role: Literal["all", "control", "spark"] = "all"
    """What this worker does: everything, all but Spark, or Spark alone."""
    sluice_build_id: str = ""
    """The version of this worker; with one, a run stays with the version that it began with."""
    sluice_shutdown_timeout: float = Field(default=5.0, ge=0)
    """How long, in seconds, a worker that is asked to end lets its work go on before it ends its Spark."""
    sluice_metrics_address: str = Field(default="", pattern=r"^(\S+:\d+)?$")
    """Where a worker serves metrics for Prometheus, as `127.0.0.1:9464`; empty means nowhere."""
    sluice_log_format: Literal["text", "json"] = "text"
    sluice_traces: str = ""
    """Where traces go, as an OTLP endpoint over HTTP: `http://127.0.0.1:4318/v1/traces`; empty means nowhere."""
    spark_engine: Literal["submit", "connect"] = "submit"
    """What runs Spark jobs: an application for each by spark-submit, or sessions on a Spark Connect server."""
    spark_connect_url: str = Field(default="", pattern=r"^(sc://\S+)?$", repr=False)
    """The Spark Connect server, as `sc://HOST:PORT`; empty means a warm one that the worker keeps."""
    spark_master: str = "local[*]"
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
    sluice_scan_engine: Literal["auto", "spark"] = "auto"
    """Which engine audits rows: DuckDB where it may and Spark elsewhere, or always Spark."""
    sluice_scan_bytes: ByteSize = ByteSize(8 * 1024**3)
    """Beyond so many bytes of data files, rows are audited by Spark."""
    sluice_scan_memory: str = Field(default="2GB", pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$")
    """How much memory DuckDB may take in a worker, before it spills to disk."""
    temporal_ui: str = "http://127.0.0.1:8233"
    sluice_heartbeat_timeout: float = Field(default=15.0, ge=1)
    sluice_open_timeout: float = Field(default=60.0, ge=1)
    sluice_act_timeout: float = Field(default=180.0, ge=1)
    sluice_approval_key_file: str = ""
    """The file with the private key that signs this person's decisions."""
    sluice_approvers_file: str = ""
    """The file that lists those who may decide, each with a public key; without it nobody has to sign."""
    sluice_codec_key_file: str = ""
    """The file with the keys that encrypt what Temporal keeps."""
    sluice_reap_every: float = Field(default=900.0, ge=0)
    """How often the reaper looks, in seconds; 0 means never."""
    sluice_reap_grace: float = Field(default=3600.0, ge=0)
    """A branch that was touched within so many seconds is left alone by the reaper."""
    sluice_installation: str = Field(default="sluice", pattern=r"^[A-Za-z0-9_.-]{1,100}$")
    """Whose runs these are: two installations that share a catalog each have their own."""
    sluice_step_timeout: float = Field(default=24 * 3600.0, ge=1)
    slack_token: str = Field(default="", repr=False)
    slack_channel: str = ""
    slack_api_url: str = "https://slack.com/api/"
    aws_endpoint_url_s3: str = ""
    """An S3-compatible store other than Amazon's. Credentials come as the AWS SDKs look for them."""
    aws_region: str = "us-east-1"

    @field_validator("nessie_uri")
    @classmethod
    def _v2(cls, uri: str) -> str:
        if not uri.startswith(("http://", "https://")) or not uri.rstrip("/").endswith("/api/v2"):
            raise ValueError(f"{uri!r} is no address of Nessie's API: it ends in /api/v2")
        return uri.rstrip("/")

    @field_validator("spark_deploy_mode")
    @classmethod
    def _deployable(cls, mode: str, info: ValidationInfo) -> str:
        master = str(info.data.get("spark_master"))
        if mode == "cluster" and not master.startswith(("yarn", "k8s://")):
            raise ValueError(
                f"SPARK_MASTER={master} runs no driver of a Python job: cluster mode is for yarn and k8s://HOST"
            )
        if mode == "cluster" and info.data.get("spark_engine") == "connect":
            raise ValueError("a Spark Connect server takes no drivers: cluster mode is for SPARK_ENGINE=submit")
        return mode

    @property
    def spark_queue(self) -> str:
        """The task queue of what runs Spark: small steps must not wait behind writes that wait for a slot."""
        return self.sluice_spark_queue or f"{self.sluice_task_queue}-spark"

    @property
    def slots(self) -> int:
        """How many Spark jobs a worker runs at a time."""
        return self.spark_slots or os.cpu_count() or 1

    @property
    def lake(self) -> str:
        """The warehouse as an absolute location."""
        if not self.warehouse:
            return (self.sluice_home / "lake").absolute().as_uri()
        return self.warehouse if "://" in self.warehouse else Path(self.warehouse).absolute().as_uri()

    @property
    def runs(self) -> Path:
        """Where each run keeps its logs."""
        return self.sluice_home.absolute() / "runs"


def read_environment() -> dict[str, str]:
    """Gather the variables of the environment, of `.env` and of the local stack, in that order of weight."""
    dotenv = {key: value for key, value in dotenv_values(".env").items() if value}
    given = {**dotenv, **{key: value for key, value in os.environ.items() if value}}
    stack = Path(given.get(HOME, DEFAULT_HOME)) / STACK_FILE
    try:
        local = json.loads(stack.read_text())["environment"]
    except (OSError, ValueError, KeyError):
        local = {}
    return {**local, **given}


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Build the settings from environment variables.

    Raises:
        BadEnvironment: a variable holds what it cannot mean.
    """
    fields = {name: environment[name.upper()] for name in Settings.model_fields if name.upper() in environment}
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        problems = (f"{str(e['loc'][0]).upper()}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors())
        raise BadEnvironment("; ".join(problems)) from error
