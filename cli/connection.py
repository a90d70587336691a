"""Connecting to Temporal, the same way for the worker, the front door and the tests."""

from collections.abc import Mapping
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from sluice.errors import BadEnvironment, ServiceUnavailable
from workflows.attributes import ALL

_PATIENCE = timedelta(seconds=10)


async def connect(environment: Mapping[str, str]) -> Client:
    """Connect as the `TEMPORAL_*` variables say, by Temporal's own rules for them.

    Raises:
        BadEnvironment: the variables contradict each other or themselves.
        ServiceUnavailable: nobody answers there.
    """
    try:
        config = ClientConfig.load_client_connect_config(override_env_vars=dict(environment))
    except Exception as error:  # the configuration's own errors have no common type
        raise BadEnvironment(f"Temporal's settings are wrong: {error}") from error
    config.setdefault("target_host", "127.0.0.1:7233")
    try:
        return await Client.connect(**config, data_converter=pydantic_data_converter)
    except (RuntimeError, RPCError) as error:
        raise ServiceUnavailable(
            f"Temporal at {config['target_host']} does not answer: start the local stack with `make up`, "
            "or set TEMPORAL_ADDRESS"
        ) from error


async def register_search_attributes(client: Client) -> None:
    """Make Sluice's search attributes known, where this is allowed; runs do without them elsewhere."""
    missing = {key.name: key.indexed_value_type for key in ALL if key.name not in await _known(client)}
    if not missing:
        return
    types = {name: IndexedValueType.ValueType(int(kind)) for name, kind in missing.items()}
    request = AddSearchAttributesRequest(search_attributes=types, namespace=client.namespace)
    try:
        await client.operator_service.add_search_attributes(request, timeout=_PATIENCE)
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            return


async def search_attributes_known(client: Client) -> bool:
    """Return whether the server knows all of Sluice's search attributes: setting an unknown one fails a run."""
    known = await _known(client)
    return all(key.name in known for key in ALL)


async def _known(client: Client) -> set[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        listed = await client.operator_service.list_search_attributes(request, timeout=_PATIENCE)
    except RPCError:
        return set()
    return set(listed.custom_attributes)
