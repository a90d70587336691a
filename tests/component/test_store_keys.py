"""A landing zone continues to load when somebody puts objects whose keys Spark cannot read.

The store is moto's server: versitygw stores objects as files, which cannot have such names.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lakehouse.source_files.arriving import list_arriving
from lakehouse.source_files.s3_client import open_client
from sluice.contracts.arrivals import ListArrivalsInput
from sluice.errors import CredentialsExpired, InvalidInput
from tests.harness.memory_zone import TEXT, Zone
from tests.harness.moto_server import moto_server

GOOD = ("in/a.csv", "in/day=1/b b.csv", "in/%2F.csv", "in/é.csv")
UNREADABLE = {
    "in//b.csv": "the part '' between slashes",
    "in/../c.csv": "the part '..' between slashes",
    "in/day=1/./d.csv": "the part '.' between slashes",
    "in/e\x1b[31m.csv": "control characters",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with moto_server() as address:
        yield address


@pytest.fixture
def store(address: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {"ENDPOINT_URL_S3": address, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    client = open_client()
    client.create_bucket(Bucket="landing")
    for each in client.list_objects_v2(Bucket="landing").get("Contents", []):
        client.delete_object(Bucket="landing", Key=each["Key"])
    for key in GOOD:
        client.put_object(Bucket="landing", Key=key, Body=b"id\n1\n" + key.encode())
    return client


def test_a_key_that_cannot_be_read_keeps_no_other_file_out(store: Any, tmp_path: Path) -> None:
    expected = list(list_arriving("s3://landing/in/"))
    assert {file.path for file in expected} == {f"s3://landing/{key}" for key in GOOD}
    for key in UNREADABLE:
        store.put_object(Bucket="landing", Key=key, Body=b"id\n1\n")
    store.put_object(Bucket="landing", Key="inside.csv", Body=b"id\n1\n")

    listed = {file.path: file for file in list_arriving("s3://landing/in/")}
    assert [listed.pop(file.path) for file in expected] == expected, "both ways to list give the same states"
    assert listed.keys() == {f"s3://landing/{key}" for key in UNREADABLE}
    assert {file.path for file in list_arriving("s3://landing/in/day=*")} == {"s3://landing/in/day=1/b b.csv"}

    zone = Zone(tmp_path, **{"from": "s3://landing/in/"})
    (batch,) = zone.settled()
    assert sorted(batch) == sorted(Path(key).name for key in GOOD)
    shown = zone.collector.list_arrivals(zone.pipeline, ListArrivalsInput(pipeline=TEXT))
    ignored = {file.path: file.detail for file in shown.files}
    for key, reason in UNREADABLE.items():
        assert reason in ignored[f"s3://landing/{key}"]


@pytest.mark.parametrize("size", [0, 1], ids=["empty", "not empty"])
def test_a_key_that_ends_in_a_slash_stops_no_file(store: Any, tmp_path: Path, size: int) -> None:
    """The client omits the slash at the end: such an object appears to have the name of a file or a folder."""
    zone = Zone(tmp_path, **{"from": "s3://landing/in/"})
    markers = ("in/", "in/day=1/", "in/a.csv/")
    for key in markers:
        store.put_object(Bucket="landing", Key=key, Body=b"x" * size)
    (batch,) = zone.settled()
    assert sorted(batch) == sorted(Path(key).name for key in GOOD)
    store.put_object(Bucket="landing", Key="in/z.csv", Body=b"id\n1\n")
    assert zone.settled() == [["z.csv"]]
    assert zone.states()["a.csv"][0] == "in a batch"
    assert zone.states()["in"][0] == ("refused" if size else "ignored")


@pytest.mark.parametrize(
    ("code", "error"), [("ExpiredToken", CredentialsExpired), ("AccessDenied", InvalidInput)], ids=["expired", "denied"]
)
def test_what_the_store_answers_to_the_second_listing_is_reported(
    store: Any, monkeypatch: pytest.MonkeyPatch, code: str, error: type[Exception]
) -> None:
    store.put_object(Bucket="landing", Key="in//b.csv", Body=b"1")

    def refuse(*_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "ListObjectsV2")

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refuse)
    with pytest.raises(error, match=code):
        list(list_arriving("s3://landing/in/"))
