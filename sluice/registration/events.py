"""The event of a publication: a CloudEvent 1.0, signed by the convention of Standard Webhooks."""

import base64
import binascii
import hashlib
import json
from datetime import datetime, timezone

from standardwebhooks import Webhook

from sluice.contracts.registration import PublicationEvent
from sluice.errors import BadEnvironment

EVENT_TYPE = "sluice.publication.v1"
CONTENT_TYPE = "application/cloudevents+json"
_PREFIX = "whsec_"
_MIN_KEY, _MAX_KEY = 24, 64
"""Minimum and maximum length of a key of Standard Webhooks, in bytes."""


def event_id(event: PublicationEvent) -> str:
    """Return the id of the event of a publication. Each delivery has the same id."""
    text = json.dumps([event.run_id, event.main_after])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def event_body(event: PublicationEvent, installation: str) -> bytes:
    """Return the event in the structured mode of CloudEvents. Each delivery has the same bytes."""
    cloud_event = {
        "specversion": "1.0",
        "id": event_id(event),
        "source": f"urn:sluice:{installation}",
        "type": EVENT_TYPE,
        "subject": event.pipeline,
        "time": event.published_at,
        "datacontenttype": "application/json",
        "data": event.model_dump(mode="json"),
    }
    return json.dumps(cloud_event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signing_key(secret: str) -> bytes:
    """Return the key in a secret of the form `whsec_BASE64`.

    The signing library would accept a key of any length, and ignore wrong characters in it.

    Raises:
        BadEnvironment: the secret has another form. The message does not quote it.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not _MIN_KEY <= len(key) <= _MAX_KEY:
        raise BadEnvironment(
            f"the secret of a webhook has the form {_PREFIX}BASE64, of {_MIN_KEY} to {_MAX_KEY} bytes: make one by "
            "`python -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\"`"
        )
    return key


def signed_headers(message_id: str, body: bytes, key: bytes, timestamp: int) -> dict[str, str]:
    """Return the headers that let a receiver verify the sender and the time of a message.

    Args:
        timestamp: the time of this try, in seconds since 1970.
    """
    tried_at = datetime.fromtimestamp(timestamp, timezone.utc)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": Webhook(key).sign(message_id, tried_at, body.decode()),
    }
