"""Send the signed event of a publication to a webhook."""

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import requests

from sluice.contracts.registration import PublicationEvent
from sluice.errors import RegistrationRefused, ServiceUnavailable
from sluice.registration.events import CONTENT_TYPE, event_body, event_id, signed_headers, signing_key
from sluice.registration.target_kinds import WebhookTarget

_TIMEOUT = (10, 30)
"""Time-outs in seconds: to connect, and between two parts of the answer."""
_WANTS_NO_MORE = 410
"""Status of a receiver that wants no more events, as defined by Standard Webhooks."""


def send_event(
    target: WebhookTarget, event: PublicationEvent, installation: str, environment: Mapping[str, str]
) -> str:
    """Send the event once; return the receiver's answer.

    Redirects are not followed: they would send the event to an address that the operator did not name. The address's
    path may be a secret, so messages name only the host.

    Raises:
        ServiceUnavailable: the receiver does not answer, or answers with another status than 2xx.
        RegistrationRefused: the receiver wants no more events.
        BadEnvironment: the secret cannot be read.
    """
    key = signing_key(target.secret.read(environment))
    body, host = event_body(event, installation), urlsplit(target.url).netloc
    headers = {
        "content-type": CONTENT_TYPE,
        "user-agent": "sluice",
        **signed_headers(event_id(event), body, key, int(time.time())),
    }
    try:
        with requests.post(
            target.url, data=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False, stream=True
        ) as answer:
            status = answer.status_code  # the body is not read, since it may be endless
    except requests.RequestException as error:
        raise ServiceUnavailable(f"{host} does not answer: {type(error).__name__}") from None
    if status == _WANTS_NO_MORE:
        raise RegistrationRefused(f"{host} answered {status}: it wants no more events")
    if not 200 <= status < 300:
        redirect = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise ServiceUnavailable(f"{host} answered {status}{redirect}")
    return f"{host} answered {status}"
