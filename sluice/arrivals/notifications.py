"""Read notifications of object stores about new objects, in the formats of AWS. They are only hints."""

import json
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

MAX_BYTES = 1024 * 1024
"""Maximum size of a message, in bytes. It is the limit of SQS."""
_MAX_RECORDS = 1000
_MAX_TOPIC = 300
_MAX_WRAPPERS = 3
"""Maximum depth of nested messages, such as an event in a message of SNS in a message of SQS."""
_CREATED = "ObjectCreated:"
_TEST_EVENT = "s3:TestEvent"


class StoredObject(NamedTuple):
    """An object of a bucket."""

    bucket: str
    key: str


class UnreadableNotification(ValueError):
    """Raised when a message is not a notification of an object store."""


class UnconfirmedSubscription(UnreadableNotification):
    """Raised when a message of SNS requests the confirmation of a subscription."""


def read_notification(message: str | bytes) -> set[StoredObject]:
    """Return the objects that a notification names as created; none for events of other kinds and for test events.

    Stores differ in the encoding of keys, so each key is returned both as it is and decoded. Nearly always, both lead
    to the same zone.

    Raises:
        UnreadableNotification: the message is not a notification, or is too large.
    """
    if len(message) > MAX_BYTES:
        raise UnreadableNotification(f"it has {len(message):,} bytes: the limit is {MAX_BYTES:,}")
    return set(_objects(_parsed(message), _MAX_WRAPPERS))


def _parsed(message: str | bytes) -> object:
    try:
        parsed: object = json.loads(message, parse_int=lambda digits: 0)  # numbers are not used, and long ones are slow
    except (ValueError, RecursionError) as error:
        raise UnreadableNotification("it is not JSON") from error
    return parsed


def _objects(event: object, wrappers: int) -> list[StoredObject]:
    if not isinstance(event, dict):
        raise UnreadableNotification("it is not an event: a JSON object is expected")
    if "Records" in event:
        return _of_records(event["Records"])
    if event.get("Event") == _TEST_EVENT:
        return []
    if "detail-type" in event:
        return _of_event_bridge(event)
    if event.get("Type") == "Notification" and isinstance(event.get("Message"), str) and wrappers:
        return _objects(_parsed(event["Message"]), wrappers - 1)
    if event.get("Type") == "SubscriptionConfirmation":
        topic = repr(event.get("TopicArn"))[:_MAX_TOPIC]
        raise UnconfirmedSubscription(
            f"SNS asks to confirm a subscription to the topic {topic}, but this receiver does not confirm any: "
            "subscribe a queue of SQS and set SLUICE_EVENTS_QUEUE, or let another receiver at this address confirm it"
        )
    raise UnreadableNotification("it is not an event of an object store: it has no `Records`, `detail` or `Message`")


def _of_records(records: object) -> list[StoredObject]:
    if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        raise UnreadableNotification("its `Records` are not a list of events")
    if len(records) > _MAX_RECORDS:
        raise UnreadableNotification(f"it has {len(records):,} events: the limit is {_MAX_RECORDS:,}")
    objects = []
    for record in records:
        if str(record.get("eventName", "")).removeprefix("s3:").startswith(_CREATED):
            stored = _object(record.get("s3"))
            objects += [stored, stored._replace(key=unquote_plus(stored.key))]
    return objects


def _of_event_bridge(event: dict[str, Any]) -> list[StoredObject]:
    """Read an event of EventBridge, whose keys are not encoded."""
    return [_object(event.get("detail"))] if event["detail-type"] == "Object Created" else []


def _object(named: object) -> StoredObject:
    try:
        bucket, key = named["bucket"]["name"], named["object"]["key"]  # type: ignore[index]
    except (TypeError, KeyError, IndexError):
        bucket = key = None
    if not isinstance(bucket, str) or not isinstance(key, str):
        raise UnreadableNotification("one of its events lacks the bucket or the key")
    return StoredObject(bucket, key)
