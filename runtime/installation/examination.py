"""Examine an installation from the command line: settings, Temporal, and the findings of its workers."""

import asyncio
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.installation.reached_installation import connect_command, running_workers
from runtime.missing_worker import START_A_WORKER
from runtime.short_workflow import query_lake
from runtime.temporal_client import missing_search_attributes
from sluice.contracts.examination import Examination, ExamineInstallationInput, ExamineSparkInput, Finding, failed
from sluice.errors import ServiceUnavailable, SluiceError
from sluice.identifiers import suggestion
from sluice.setting_groups import InstallationSettings
from sluice.settings import GROUP_OF, Settings, read_settings
from sluice.sizes import format_count

_TIMEOUT = 5.0
_CLOSE = 0.85
"""Minimum similarity to the name of a setting. Variables of the local stack and of the tests are less similar."""
_START = f"{START_A_WORKER}: a worker that cannot start says why, and ends"


async def examine(environment: Mapping[str, str]) -> list[Finding]:
    """Check every part of an installation, as far as the parts that the check needs are available."""
    try:
        settings = read_settings(environment)
    except SluiceError as error:
        return [failed("settings", str(error), "`.env.example` documents every setting")]
    findings = [Finding(part="settings", state="ok", detail=f"home {settings.storage.sluice_home}")]
    findings += _misspelt_settings(environment)
    try:
        client = (await connect_command(environment, read_only=True)).client
    except SluiceError as error:
        return [*findings, failed("Temporal", str(error))]
    findings += [
        await _temporal(client),
        await _search_attributes(client),
        await asyncio.to_thread(_web_ui, settings.installation),
    ]
    return [*findings, *await _workers(client, settings)]


def _misspelt_settings(environment: Mapping[str, str]) -> list[Finding]:
    """Return a warning for each `SLUICE_` variable with almost the name of a setting: it has no effect."""
    known = {name.upper() for name in GROUP_OF}
    unknown = [name for name in environment if name.startswith("SLUICE_") and name not in known]
    close = {name: meant for name in unknown if (meant := suggestion(name, known, _CLOSE))}
    return [
        Finding(part="settings", state="warning", detail=f"{name} is no setting{meant}", remedy="correct the name")
        for name, meant in close.items()
    ]


async def _temporal(client: Client) -> Finding:
    address, namespace = client.service_client.config.target_host, client.namespace
    try:
        info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except RPCError as error:
        return failed("Temporal", f"{address}: {error.message}", "set TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE")
    detail = f"{address}, version {info.server_version}, namespace {namespace}"
    return Finding(part="Temporal", state="ok", detail=detail)


async def _search_attributes(client: Client) -> Finding:
    missing = await missing_search_attributes(client)
    if missing is None:
        detail = "the server does not say which search attributes it has: runs work without them"
        return Finding(part="search attributes", state="warning", detail=detail)
    if not missing:
        return Finding(part="search attributes", state="ok", detail="all are registered")
    commands = "; ".join(
        f"temporal operator search-attribute create --name {name} --type {kind}" for name, kind in missing.items()
    )
    return Finding(
        part="search attributes",
        state="warning",
        detail=f"{', '.join(missing)} are not registered: `list` and the Web UI cannot search by them",
        remedy=f"a worker registers them if it may; else: {commands}",
    )


def _web_ui(settings: InstallationSettings) -> Finding:
    """Check the address to which reports and messages link."""
    address = settings.temporal_ui
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT):  # the operator's own setting
            return Finding(part="Web UI", state="ok", detail=address)
    except HTTPError:  # it answers, and requires a login
        return Finding(part="Web UI", state="ok", detail=address)
    except (OSError, ValueError, HTTPException) as error:
        return Finding(
            part="Web UI",
            state="warning",
            detail=f"{address} does not answer from here: {getattr(error, 'reason', None) or error}",
            remedy="set TEMPORAL_UI to its address: reports and messages link there",
        )


async def _workers(client: Client, settings: Settings) -> list[Finding]:
    """Let a worker of each task queue examine itself. Without a worker, its part is unknown.

    The requests go through the first task queue, whose workers run the workflow.
    """
    findings: list[Finding] = []
    queues: dict[str, ExamineInstallationInput | ExamineSparkInput] = {
        settings.installation.sluice_task_queue: ExamineInstallationInput(),
        settings.installation.spark_queue: ExamineSparkInput(),
    }
    for queue, question in queues.items():
        number = len(await running_workers(client, queue))
        if not number:
            absent = f"no worker takes work from the task queue {queue!r}, so `doctor` cannot check a worker's needs"
            log = settings.storage.sluice_home / "logs" / "worker.log"
            remedy = f"{_START} (see {log})" if log.is_file() else _START
            findings.append(failed("worker", absent, remedy))
            if queue == settings.installation.sluice_task_queue:
                break
            continue
        polled = Finding(part="worker", state="ok", detail=f"{format_count(number, 'worker')} on {queue}")
        try:
            findings += [polled, *(await query_lake(client, settings.installation, question, Examination)).findings]
        except ServiceUnavailable as error:
            findings.append(_unanswered(queue, settings, number, error))
            if queue == settings.installation.sluice_task_queue:
                break  # its workers also pass on the question to Spark's
        except (SluiceError, RPCError) as error:
            findings += [polled, failed("worker", f"{queue}: {error}")]
    return findings


def _unanswered(queue: str, settings: Settings, number: int, error: ServiceUnavailable) -> Finding:
    """Return the finding for a worker that does not answer: it ended, or is a Spark worker with all slots in use.

    Args:
        number: number of workers that polled lately. A killed worker is one of them for a while.
    """
    if queue != settings.installation.spark_queue:
        seen = f"Temporal saw {format_count(number, 'worker')} within the last 90 s, which may have ended since"
        return failed("worker", f"{queue}: {error}. {seen}", _START)
    detail = f"{queue}: no answer, maybe because a job is in each of its {settings.spark.slots} slots: {error}"
    return Finding(part="worker", state="warning", detail=detail, remedy="run `doctor` again when jobs have ended")
