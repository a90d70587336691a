"""The settings of each worker. Those of the Spark worker are listed, so that it gets no new setting by default."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from devstack.errors import StackError

_SPARK = frozenset(
    {
        *("NESSIE_URI", "TEMPORAL_UI", "SLUICE_MAIN", "CATALOG_NAME", "SLUICE_TASK_QUEUE", "SLUICE_BUILD_ID"),
        *("AWS_ENDPOINT_URL_S3", "AWS_REGION", "SLUICE_KEEP_RUN_FILES", "SLUICE_SHUTDOWN_TIMEOUT"),
        *("SLUICE_HEARTBEAT_TIMEOUT", "SLUICE_OPEN_TIMEOUT", "SLUICE_STEP_TIMEOUT", "SLUICE_WAIT_TIMEOUT"),
        *("SLUICE_ACTIVITY_TIMEOUT", "SLUICE_SCAN_ENGINE", "SLUICE_SCAN_BYTES", "SLUICE_SCAN_MEMORY"),
        *("SLUICE_LOG_FORMAT", "SLUICE_TRACES", "SLUICE_JOB_ENVIRONMENT"),
        *("SPARK_MASTER", "SPARK_ENGINE", "SPARK_CONNECT_URL", "SPARK_DEPLOY_MODE", "SPARK_DRIVER_MEMORY"),
        *("SPARK_SLOTS", "SPARK_PACKAGES"),
        *("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_TLS", "TEMPORAL_TLS_SERVER_NAME"),
        *("TEMPORAL_TLS_SERVER_CA_CERT_PATH", "TEMPORAL_TLS_SERVER_CA_CERT_DATA"),
        "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION",
    }
)
_WRITTEN = frozenset(
    {
        *("SLUICE_HOME", "WAREHOUSE", "SLUICE_INSTALLATION", "SLUICE_WORKER_ROLE", "SPARK_PROPERTIES_FILE"),
        *("NESSIE_WRITER_TOKEN_FILE", "NESSIE_PUBLISHER_TOKEN_FILE", "SLUICE_CODEC_KEY_FILE"),
    }
)
"""Settings that the command writes itself: roles, folders, and files that it copies."""
_OF_NO_WORKER = frozenset({"SLUICE_APPROVAL_KEY_FILE", "SLUICE_CODEC_TOKEN_FILE", "TEMPORAL_CLI_PATH"})
"""Settings for a person's command line, and for the local stack, which no worker gets."""
_BY_CONTENT = ("TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH")


def given_to(role: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the installation's settings that a worker reads from its file."""
    kept = _SPARK & given.keys() if role == "spark" else given.keys() - _WRITTEN - _OF_NO_WORKER
    return {name: given[name] for name in sorted(kept)}


def temporal_credentials(given: Mapping[str, str]) -> dict[str, str]:
    """Return Temporal's variables for the environment of the Spark worker, which its jobs cannot read.

    Raises:
        StackError: a variable names a file that the worker, and so its jobs, would have to read.
    """
    names = {name for name in given if name.startswith("TEMPORAL_")} - _SPARK - _OF_NO_WORKER
    if "TEMPORAL_CONFIG_FILE" in names:
        raise StackError(
            "TEMPORAL_CONFIG_FILE: the Spark worker, and so its jobs, would have to read this file. "
            "Set the values of its profile as TEMPORAL_* variables instead"
        )
    variables = {name: given[name] for name in sorted(names - {*_BY_CONTENT})}
    for name in names & {*_BY_CONTENT}:
        variables[name.removesuffix("PATH") + "DATA"] = Path(given[name]).read_text()
    return variables


def env_file(role: str, variables: Mapping[str, str]) -> str:
    """Return the text of a worker's `.env`.

    Raises:
        StackError: a value contains `${...}`, which would be replaced by another variable.
    """
    lines = [f"# The {role} worker's settings. `python -m devstack.split_users` wrote them, and replaces them."]
    for name, value in variables.items():
        if "${" in value:
            raise StackError(f"{name} contains ${{...}}, which `.env` replaces by another variable: write it out")
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"{name}='{escaped}'")
    return "\n".join(lines) + "\n"


def environment_file(variables: Mapping[str, str]) -> str:
    """Return the text of the file from which root's shell sets the environment of the Spark worker."""
    lines = [
        "# Environment of the Spark worker, as lines of the shell. Set-up never replaces this file: change it by hand.",
        "# Jobs cannot read it. Add what else the Spark worker needs, as AWS_* for a lake on S3: jobs get those, too.",
        *(f"{name}={shlex.quote(value)}" for name, value in variables.items()),
    ]
    return "\n".join(lines) + "\n"
