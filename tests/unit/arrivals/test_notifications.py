"""Notifications of object stores: what is read of them, and which landing zones they concern."""

import json
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.arrivals.notifications import MAX_BYTES, StoredObject, UnreadableNotification, read_notification
from sluice.arrivals.notified_zones import NotifiedZone, NotifiedZones

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "Records",
                    "s3",
                    "bucket",
                    "object",
                    "name",
                    "key",
                    "eventName",
                    "detail",
                    "detail-type",
                    "Type",
                    "Message",
                    "Event",
                ]
            ),
            inner
            | st.sampled_from(["ObjectCreated:Put", "s3:TestEvent", "Notification", "Object Created", "{}", "[1]"]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


def record(bucket: str, key: str, name: str = "ObjectCreated:Put") -> dict[str, Any]:
    return {"eventSource": "aws:s3", "eventName": name, "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}


def s3_event(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": records})


def by_sns(message: str) -> str:
    return json.dumps({"Type": "Notification", "MessageId": "1", "TopicArn": "arn", "Message": message})


def by_event_bridge(bucket: str, key: str, kind: str = "Object Created") -> str:
    detail = {"bucket": {"name": bucket}, "object": {"key": key, "size": 5}, "reason": "PutObject"}
    return json.dumps({"version": "0", "detail-type": kind, "source": "aws.s3", "detail": detail})


@pytest.mark.parametrize(
    "message",
    [
        s3_event(record("landing", "orders/a.csv")),
        s3_event(record("landing", "orders/a.csv", "s3:ObjectCreated:CompleteMultipartUpload")),  # versitygw's name
        s3_event(record("landing", "x", "ObjectRemoved:Delete"), record("landing", "orders/a.csv")),
        by_sns(s3_event(record("landing", "orders/a.csv"))),
        by_sns(by_sns(s3_event(record("landing", "orders/a.csv")))),
        by_event_bridge("landing", "orders/a.csv"),
        by_sns(by_event_bridge("landing", "orders/a.csv")),
    ],
)
def test_each_shape_of_an_event_names_its_object(message: str) -> None:
    assert read_notification(message) == {("landing", "orders/a.csv")}
    assert read_notification(message.encode()) == {("landing", "orders/a.csv")}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50))
def test_the_key_is_there_as_the_store_has_it(key: str) -> None:
    assert StoredObject("b", key) in read_notification(s3_event(record("b", quote_plus(key))))
    assert StoredObject("b", key) in read_notification(s3_event(record("b", key))), "not encoded"
    assert read_notification(by_event_bridge("b", key)) == {("b", key)}


@pytest.mark.parametrize(
    "message",
    [
        json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "landing"}),
        s3_event(),
        s3_event(record("landing", "x", "ObjectRemoved:Delete")),
        by_event_bridge("landing", "x", "Object Deleted"),
    ],
)
def test_other_events_name_nothing(message: str) -> None:
    assert read_notification(message) == set()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "not JSON"),
        ("hello", "not JSON"),
        (b"\xff\xfe\x00\xd8", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an event"),
        ("{}", "not an event of an object store"),
        ('{"Records": {}}', "not a list of events"),
        ('{"Records": [1]}', "not a list of events"),
        (s3_event({"eventName": "ObjectCreated:Put"}), "lacks the bucket"),
        (
            s3_event({"eventName": "ObjectCreated:Put", "s3": {"bucket": "b", "object": "o"}}),
            "lacks the bucket or the key",
        ),
        (s3_event(record("b", "k"), {"eventName": "ObjectCreated:Put", "s3": {}}), "lacks the bucket"),
        (by_event_bridge("b", "k").replace('"k"', "5"), "lacks the bucket"),
        (by_sns("hello"), "not JSON"),
        (json.dumps({"Type": "SubscriptionConfirmation", "Message": "You have chosen"}), "asks to confirm"),
        (by_sns(by_sns(by_sns(by_sns(s3_event())))), "not an event of an object store"),
        (s3_event(*[record("b", "k")] * 1001), "1,001 events"),
        (s3_event(record("b", "k" * MAX_BYTES)), "the limit is"),
    ],
)
def test_anything_else_is_refused_with_a_reason(message: str | bytes, reason: str) -> None:
    with pytest.raises(UnreadableNotification, match=reason):
        read_notification(message)


@given(JSON)
def test_hostile_messages_are_read_or_refused(message: object) -> None:
    for text in (json.dumps(message), by_sns(json.dumps(message))):
        try:
            objects = read_notification(text)
        except UnreadableNotification:
            continue
        assert all(isinstance(part, str) for stored in objects for part in stored)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        assert read_notification(message) == set()
    except UnreadableNotification as error:
        assert str(error)


def test_numbers_of_any_length_are_read_at_once() -> None:
    message = s3_event(record("b", "k")).replace('"key"', f'"size": {"9" * 500_000}, "key"')
    assert read_notification(message) == {("b", "k")}


def zones(**paths: str) -> NotifiedZones:
    return NotifiedZones(frozenset(NotifiedZone(name, path) for name, path in paths.items()))


def plain(key: str) -> str:
    """Return a key as listings return it."""
    return "/".join(part for part in key.split("/") if part)


@pytest.mark.parametrize(
    ("path", "concerned", "others"),
    [
        ("s3://b/orders/", ["orders/a.csv", "orders/2026/a.csv", "orders"], ["orders2/a.csv", "order", "a/orders/b"]),
        ("s3a://b/orders", ["orders/a.csv"], ["orders-old/a.csv"]),
        ("s3n://b//orders//x/", ["orders/x/a", "orders//x/a", "/orders/x/a"], ["orders/y/a"]),
        ("s3://b", ["a", "x/y"], []),
        ("s3://b/", ["a", "x/y"], []),
        ("s3://b/in/2026-*/x.csv", ["in/2026-01/x.csv", "in/2026-01/y.csv"], ["in/2025-01/x.csv", "2026-01/x.csv"]),
        ("s3://b/in/**/*.csv", ["in/a.csv", "in/a/b.csv"], ["input/a.csv", "in"]),
        ("s3://b/in/[ab].csv", ["in/a.csv"], ["on/a.csv"]),
        ("gs://b/orders/", [], ["orders/a.csv"]),
        ("/b/orders/", [], ["orders/a.csv"]),
    ],
)
def test_the_objects_of_a_zone_are_below_its_fixed_prefix(path: str, concerned: list[str], others: list[str]) -> None:
    known = zones(z=path, other="s3://b2/")
    for key in concerned:
        assert known.of_objects([StoredObject("b", key)]) == {"z": {f"{path.partition('//')[0]}//b/{plain(key)}"}}, key
    for key in others:
        assert known.of_objects([StoredObject("b", key)]) == {}, key
    assert not known.of_objects([StoredObject("b3", key) for key in concerned])


def test_an_object_may_concern_several_zones() -> None:
    known = zones(all="s3://b/", orders="s3://b/orders", rides="s3://b/rides/*.csv")
    order, ride = StoredObject("b", "orders/a"), StoredObject("b", "rides/a.csv")
    both = {"all": {"s3://b/orders/a"}, "orders": {"s3://b/orders/a"}}
    assert known.of_objects([order, StoredObject("x", "rides/a")]) == both
    both["all"].add("s3://b/rides/a.csv")
    assert known.of_objects([order, ride]) == both | {"rides": {"s3://b/rides/a.csv"}}


def test_the_folder_of_a_pattern_is_the_one_before_its_first_wildcard() -> None:
    known = zones(a="/in/orders", b="/in/orders/*.csv", c="/in/2026-*/x.csv", d="/*.csv", e="s3://b/in/")
    local = {zone.workflow_id: (zone.folder, zone.pattern) for zone in known.zones if zone.is_folder}
    assert local == {
        **{"a": ("/in/orders", ()), "b": ("/in/orders", ("*.csv",))},
        **{"c": ("/in", ("2026-*", "x.csv")), "d": ("/", ("*.csv",))},
    }
