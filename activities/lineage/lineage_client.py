"""The receiver of OpenLineage events, configured by the usual settings of OpenLineage's Python client.

The client is imported for the first event. The import takes half a second, and most workers send no events.
"""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import requests
from ruamel.yaml import YAML

from activities.installation.examinations import NeedsRemedy
from sluice.contracts.examination import Finding
from sluice.errors import BadEnvironment
from sluice.located_yaml import UNREADABLE
from sluice.redaction import redacted
from sluice.setting_groups import LineageSettings

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

_FILE = "openlineage.yml"
_TRANSPORT_VARIABLE = "OPENLINEAGE__TRANSPORT__TYPE"
"""One of the environment variables that can configure the client, too."""
_TIMEOUT = 5
"""Time-out of one request to a receiver, in seconds."""
_NO_RETRIES = {"total": 0, "connect": 0, "read": 0, "status_forcelist": []}
"""Retry settings of the client. Temporal retries instead, because the client could exceed the activity's time-out."""
_PART = "OpenLineage"
_importing = threading.Lock()


def is_configured(settings: LineageSettings) -> bool:
    """Return True if a receiver of events is set up, in any way that the client supports."""
    if settings.openlineage_disabled:
        return False
    return bool(settings.openlineage_url or _TRANSPORT_VARIABLE in os.environ or _configuration_file(settings))


def open_client(settings: LineageSettings) -> "OpenLineageClient":
    """Return a client for the receiver that is set up.

    Raises:
        BadEnvironment: the configuration names no receiver, or cannot be read.
    """
    with _importing:  # two threads may import it at once
        from openlineage.client import OpenLineageClient  # noqa: PLC0415
    configuration = _read_configuration(_configuration_file(settings))
    if _TRANSPORT_VARIABLE not in os.environ and not _names_transport(configuration):
        if not settings.openlineage_url:
            raise BadEnvironment(
                f"{_configuration_file(settings)} names no `transport.type`: add one, or set OPENLINEAGE_URL"
            )
        configuration["transport"] = _http_transport(settings)
    try:
        return OpenLineageClient(config=configuration)
    except Exception as error:  # the transport's configuration may raise any error
        raise BadEnvironment(f"the configuration of OpenLineage is not valid: {redacted(str(error))}") from error


def examine_receiver(settings: LineageSettings) -> Finding:
    """Check the receiver of events without sending an event.

    Raises:
        NeedsRemedy: the receiver does not answer, or refuses the key.
    """
    if not is_configured(settings):
        what = "OPENLINEAGE_DISABLED is set" if settings.openlineage_disabled else "OPENLINEAGE_URL is not set"
        return Finding(part=_PART, state="off", detail=f"{what}, so no events are sent")
    transport = open_client(settings).transport
    url = getattr(transport, "url", None)
    if transport.kind != "http" or not isinstance(url, str):
        what = f"events are sent by the transport `{transport.kind}`, which `doctor` does not check"
        return Finding(part=_PART, state="ok", detail=what)
    return _examine_http(transport, urljoin(url, str(getattr(transport, "endpoint", ""))))


def _examine_http(transport: Any, address: str) -> Finding:
    bearer = transport.config.auth.get_bearer()
    headers = {**({"Authorization": bearer} if bearer else {}), **transport.config.custom_headers}
    try:
        answer = requests.get(
            address, headers=headers, timeout=_TIMEOUT, verify=transport.verify, cert=transport.cert, stream=True
        )
        answer.close()
    except requests.RequestException as error:
        remedy = "check the network and OPENLINEAGE_URL; meanwhile runs continue, and their events are lost"
        raise NeedsRemedy(f"{address} does not answer: {type(error).__name__}", remedy) from None
    status = answer.status_code
    if status in (401, 403):
        raise NeedsRemedy(
            f"{address} refuses the key: {status}", "set OPENLINEAGE_API_KEY to a key that may send events"
        )
    if status >= 500:
        raise NeedsRemedy(f"{address} answers {status}", "see the log of the receiver")
    if status == 404:
        remedy = (
            "set OPENLINEAGE_ENDPOINT to the receiver's path; a receiver that only accepts events may answer 404, too"
        )
        return Finding(part=_PART, state="warning", detail=f"{address} answers 404", remedy=remedy)
    return Finding(part=_PART, state="ok", detail=f"{address} answers; no event was sent")


def _configuration_file(settings: LineageSettings) -> Path | None:
    """Return the configuration file that the client reads, if there is one.

    The file that OPENLINEAGE_CONFIG names is returned even if it does not exist. Reading it then fails.
    """
    if settings.openlineage_config:
        return Path(settings.openlineage_config).expanduser()
    usual = (Path(_FILE), Path("~/.openlineage").expanduser() / _FILE)
    return next((file for file in usual if os.access(file, os.R_OK)), None)


def _read_configuration(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        content = YAML(typ="safe", pure=True).load(file.read_text())
    except (OSError, *UNREADABLE) as error:
        why = getattr(error, "strerror", None) or getattr(error, "problem", None) or type(error).__name__
        raise BadEnvironment(f"the configuration of OpenLineage, {file}, cannot be read: {why}") from error
    if not isinstance(content, dict):
        raise BadEnvironment(f"the configuration of OpenLineage, {file}, is not a mapping with a key `transport`")
    return content


def _names_transport(configuration: dict[str, Any]) -> bool:
    transport = configuration.get("transport")
    return isinstance(transport, dict) and bool(transport.get("type"))


def _http_transport(settings: LineageSettings) -> dict[str, Any]:
    key = settings.openlineage_api_key
    return {
        "type": "http",
        "url": settings.openlineage_url,
        "endpoint": settings.openlineage_endpoint,
        "timeout": _TIMEOUT,
        "retry": _NO_RETRIES,
        **({"auth": {"type": "api_key", "apiKey": key}} if key else {}),
    }
