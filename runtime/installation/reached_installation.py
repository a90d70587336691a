"""Connect a command to Temporal, and check that it reaches its own installation.

The workers of an installation name it in their identity, which Temporal shows for each task queue. A person who sets
the address of Temporal chose it. Without an address, a command reaches the stack of its folder, or nothing, since
another stack may listen on the usual port.
"""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

from runtime.installation.identity import known_installation
from runtime.temporal_client import connect
from sluice.environment_files import given_environment, stack_environment
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.identifiers import reaper_schedule_id
from sluice.setting_groups import INSTALLATION_PATTERN, InstallationSettings, ReaperSettings
from sluice.settings import read_settings

_ADDRESS = "TEMPORAL_ADDRESS"
_IDENTITY = re.compile(rf"#({INSTALLATION_PATTERN})$")
_OWN_STACK = "`make up` starts it"
_ALIVE = timedelta(seconds=90)
"""Time since its last poll after which a worker is taken for dead: a poll waits for a task for at most a minute."""


@dataclass(frozen=True)
class ReachedTemporal:
    """A command's connection to Temporal, with a hint for the person."""

    client: Client
    installation: str
    """Id of the installation whose workers the command reaches, as far as it is known."""
    hint: str = ""
    """Sentence that names the reached installation, if it is not the one of this folder."""


def worker_identity(installation: str) -> str:
    """Return the identity of this process as a worker: process, host, and the installation if it is known."""
    return f"{os.getpid()}@{socket.gethostname()}{f'#{installation}' if installation else ''}"


async def connect_command(environment: Mapping[str, str], *, read_only: bool) -> ReachedTemporal:
    """Connect a command according to its environment variables.

    Args:
        environment: the variables.
        read_only: True if the command changes nothing, so that it may reach another installation.

    Raises:
        BadEnvironment: the variables are invalid, or the reached installation is not the one of this folder.
        ServiceUnavailable: no server answers; or, without an address, the server is not the one of this folder.
    """
    settings = read_settings(environment)
    chosen, has_stack = _is_chosen(environment), bool(stack_environment(environment))
    try:
        client = await connect(environment)
    except ServiceUnavailable:
        if chosen or has_stack:
            raise
        raise ServiceUnavailable(f"the stack of this folder is down: {_OWN_STACK}. Or set {_ADDRESS}") from None
    own = known_installation(settings)
    served = await serving_installations(client, settings.installation.sluice_task_queue)
    if own in served:
        return ReachedTemporal(client, own)
    if chosen:
        reached = next(iter(served)) if len(served) == 1 else own
        return ReachedTemporal(client, reached, _hint(client, settings.installation, own, served, read_only=read_only))
    if not served and await _has_worked_here(client, settings.reaper, own, has_stack=has_stack):
        return ReachedTemporal(client, own)
    raise ServiceUnavailable(_refusal(client, served, has_stack=has_stack))


async def check_task_queue(client: Client, settings: InstallationSettings, environment: Mapping[str, str]) -> str:
    """Return a warning if workers of another installation take work from the task queue of this worker.

    Raises:
        BadEnvironment: there are such workers, and no person chose this Temporal, so this worker would take their work.
    """
    others = await serving_installations(client, settings.sluice_task_queue) - {settings.sluice_installation}
    if not others:
        return ""
    mixed = (
        f"workers of {_named(others)} take work from the task queue {settings.sluice_task_queue!r} at "
        f"{_address(client)}, and this worker is of installation {settings.sluice_installation}"
    )
    if not _is_chosen(environment) and not stack_environment(environment):
        raise BadEnvironment(f"{mixed}. Set {_ADDRESS} or SLUICE_TASK_QUEUE, or start a stack of your own by `make up`")
    return mixed


async def serving_installations(client: Client, queue: str) -> set[str]:
    """Return the installations whose workers polled a task queue within the last minutes."""
    return {named[1] for worker in await polling_workers(client, queue) if (named := _IDENTITY.search(worker))}


async def polling_workers(client: Client, queue: str, within: timedelta = timedelta.max) -> set[str]:
    """Return the identities of the workers that polled a task queue for activities lately.

    Args:
        within: maximum time since the last poll; by default as long as Temporal remembers it.
    """
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    try:
        described = await client.workflow_service.describe_task_queue(request)
    except RPCError:
        return set()
    now = datetime.now(timezone.utc)
    return {
        poller.identity
        for poller in described.pollers
        if now - poller.last_access_time.ToDatetime(timezone.utc) <= within
    }


async def running_workers(client: Client, queue: str) -> set[str]:
    """Return the identities of the workers of a task queue that are alive."""
    return await polling_workers(client, queue, _ALIVE)


def _is_chosen(environment: Mapping[str, str]) -> bool:
    """Return True if a person set the address: by a variable, in `.env`, or in Temporal's configuration file."""
    try:
        given = ClientConfig.load_client_connect_config(override_env_vars=dict(given_environment()))
    except Exception:  # `connect` reports it
        return True
    return "target_host" in given or environment.get(_ADDRESS) != stack_environment(environment).get(_ADDRESS)


async def _has_worked_here(client: Client, settings: ReaperSettings, own: str, *, has_stack: bool) -> bool:
    """Return True if this Temporal knows this installation, although its workers do not run now."""
    if not own:
        return False
    if not settings.sluice_reap_every:  # without this schedule, Temporal does not show the installation
        return has_stack
    try:
        await client.get_schedule_handle(reaper_schedule_id(own)).describe()
    except RPCError:
        return False
    return True


def _hint(client: Client, settings: InstallationSettings, own: str, served: set[str], *, read_only: bool) -> str:
    """Return a sentence on the installation that the chosen Temporal serves, if it is not this one.

    Raises:
        BadEnvironment: the command changes something, or SLUICE_INSTALLATION is set to another id.
    """
    if not served or not own:
        return ""
    reached = f"the workers at {_address(client)} are of {_named(served)}"
    stated = settings.sluice_installation
    if read_only and not stated:
        return f"{reached}, not of this folder's {own}"
    raise BadEnvironment(
        f"{reached}, and {'SLUICE_INSTALLATION' if stated else 'that of this folder'} is {own}: nothing was done. Set "
        f"SLUICE_INSTALLATION={min(served)} to use theirs, or {_ADDRESS} or SLUICE_TASK_QUEUE to those of your own"
    )


def _refusal(client: Client, served: set[str], *, has_stack: bool) -> str:
    address = _address(client)
    who = f"the stack of {_named(served)}" if served else "a Temporal server that this folder does not know"
    if has_stack:
        return f"the stack of this folder is down, and {who} listens at {address}: run `make down`, then `make up`"
    return f"the stack of this folder is down: {_OWN_STACK}. At {address} listens {who}; set {_ADDRESS} to use that"


def _address(client: Client) -> str:
    return str(client.service_client.config.target_host)


def _named(installations: set[str]) -> str:
    return f"installation {' and '.join(sorted(installations))}"
