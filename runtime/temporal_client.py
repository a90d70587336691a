"""Connect to Temporal, in the same way for the worker, the command line and the tests."""

import dataclasses
import functools
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes
from temporalio.envconfig import ClientConfig
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode

from runtime.codec import RefuseEncrypted, read_codec
from runtime.payloads import ParsingCodec, ThreadedDataConverter
from sluice.errors import BadEnvironment, ServiceUnavailable
from workflows.search_attributes import ALL

_TIMEOUT = timedelta(seconds=10)
_log = logging.getLogger("temporalio.core")
_log.addHandler(logging.NullHandler())  # a command has no log: its own messages say that Temporal does not answer
LOGGING = LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), LogForwardingConfig(_log))
"""Forwards the log of the SDK's Rust core to Python's logging. Its default is standard output, which `--json` needs."""


async def connect(environment: Mapping[str, str], **more: Any) -> Client:
    """Connect according to the `TEMPORAL_*` variables, by Temporal's own rules for them.

    Raises:
        BadEnvironment: the variables are invalid or contradict each other.
        ServiceUnavailable: no server answers at the address.
    """
    try:
        config = ClientConfig.load_client_connect_config(override_env_vars=dict(environment))
    except Exception as error:  # the configuration's own errors have no common type
        raise BadEnvironment(f"Temporal's settings are wrong: {error}") from error
    config.setdefault("target_host", "127.0.0.1:7233")
    try:
        runtime = more.get("runtime") or _runtime()
        data_converter = converter(environment)
        return await Client.connect(**{**config, **more, "runtime": runtime, "data_converter": data_converter})
    except (RuntimeError, RPCError) as error:
        raise ServiceUnavailable(
            f"Temporal at {config['target_host']} does not answer: start the local stack with `make up`, "
            "or set TEMPORAL_ADDRESS"
        ) from error


def converter(environment: Mapping[str, str]) -> DataConverter:
    """Return the data converter: payloads are JSON, encrypted if there is a key file.

    Raises:
        BadEnvironment: the key file is unreadable or empty, or a line is not a key.
    """
    codec = read_codec(environment.get("SLUICE_CODEC_KEY_FILE", ""))
    converter = ThreadedDataConverter(
        payload_converter_class=pydantic_data_converter.payload_converter_class,
        payload_codec=ParsingCodec(codec or RefuseEncrypted()),
    )
    if codec is None:
        return converter
    return dataclasses.replace(converter, failure_converter_class=DefaultFailureConverterWithEncodedAttributes)


@functools.cache
def _runtime() -> Runtime:
    return Runtime(telemetry=TelemetryConfig(logging=LOGGING))


async def register_search_attributes(client: Client) -> None:
    """Register Sluice's search attributes, if the server allows it; runs work without them."""
    missing = {key.name: key.indexed_value_type for key in ALL if key.name not in await _known(client)}
    if not missing:
        return
    types = {name: IndexedValueType.ValueType(int(kind)) for name, kind in missing.items()}
    request = AddSearchAttributesRequest(search_attributes=types, namespace=client.namespace)
    try:
        await client.operator_service.add_search_attributes(request, timeout=_TIMEOUT)
    except RPCError as error:
        if error.status != RPCStatusCode.ALREADY_EXISTS:
            return


async def search_attributes_known(client: Client) -> bool:
    """Return True if the server has all of Sluice's search attributes. Setting an unknown one fails a run."""
    known = await _known(client)
    return all(key.name in known for key in ALL)


async def missing_search_attributes(client: Client) -> dict[str, str] | None:
    """Return the names and types of Sluice's search attributes that the server lacks; None if it does not say."""
    known = await _known(client)
    if not known:
        return None
    return {key.name: key.indexed_value_type.name.title().replace("_", "") for key in ALL if key.name not in known}


async def _known(client: Client) -> set[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        listed = await client.operator_service.list_search_attributes(request, timeout=_TIMEOUT)
    except RPCError:
        return set()
    return set(listed.custom_attributes)
