"""Objects that main has loaded are tagged or moved in a real store: none is overwritten, none is lost.

Skipped if versitygw is not available.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devstack.stack import ROOT
from lakehouse.arrivals.finisher import ArrivalFinisher
from lakehouse.source_files.arriving import find_arriving, list_arriving
from lakehouse.source_files.identify import find_files
from lakehouse.source_files.loaded_objects import LoadedObjects
from lakehouse.source_files.moving import Unmovable, names_at
from lakehouse.source_files.paths import source_of_files
from sluice.contracts.arrivals import FinishArrivalsInput, FinishArrivalsResult
from sluice.errors import InputChanged, ServiceUnavailable
from sluice.pipeline.source import Source
from tests.harness.loading_run import Run
from tests.harness.memory_zone import TEXT, Zone
from tests.harness.object_store import running_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # building the store may be necessary

KILLED = """
import os, signal, sys
from lakehouse.source_files.loaded_objects import LoadedObjects
LoadedObjects._delete = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
LoadedObjects().move(*sys.argv[1:], lambda: None)
"""


class Bucket:
    """The bucket `landing` of a store, and one for loaded files."""

    def __init__(self) -> None:
        self.objects = LoadedObjects()
        self.s3: Any = self.objects._s3

    def put(self, key: str, content: str, **more: Any) -> str:
        self.s3.put_object(Bucket="landing", Key=key, Body=content.encode(), **more)
        return f"s3://landing/{key}"

    def once_before(self, operation: str, path: str, happens: Callable[[], object]) -> None:
        """Let something happen before the first call of an operation on an object."""
        event = f"provide-client-params.s3.{operation}"

        def happen(params: dict[str, Any], **_: object) -> None:
            if f"s3://{params['Bucket']}/{params['Key']}" == path:
                self.s3.meta.events.unregister(event, happen)
                happens()

        self.s3.meta.events.register(event, happen)

    def identity(self, path: str) -> str:
        (file,) = find_files(Source(path=path, format="csv"))
        return file.identity

    def move(self, path: str, identity: str = "") -> str:
        target = path.replace("s3://landing/in/", "s3://loaded/")
        return self.objects.move(path, identity or self.identity(path), target, lambda: None)

    def tags(self, path: str) -> dict[str, str]:
        tags = self.s3.get_object_tagging(Bucket="landing", Key=path.removeprefix("s3://landing/"))["TagSet"]
        return {tag["Key"]: tag["Value"] for tag in tags}

    def files(self) -> dict[str, str]:
        keys = [(b, each["Key"]) for b in ("landing", "loaded") for each in self._list(b)]
        return {f"{b}/{key}": self.s3.get_object(Bucket=b, Key=key)["Body"].read().decode() for b, key in keys}

    def _list(self, bucket: str) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return contents

    def empty(self) -> None:
        for bucket in ("landing", "loaded"):
            for each in self._list(bucket):
                self.s3.delete_object(Bucket=bucket, Key=each["Key"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with running_store(tmp_path_factory.mktemp("store"), "landing", "loaded") as variables:
        yield variables


@pytest.fixture
def bucket(store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    bucket = Bucket()
    bucket.empty()
    return bucket


def test_an_object_is_moved_with_what_belongs_to_it(bucket: Bucket) -> None:
    path = bucket.put("in/day=1/a b.csv", "1", Metadata={"by": "ana"}, ContentType="text/csv", Tagging="k=v")
    identity = bucket.identity(path)
    assert bucket.move(path) == "s3://loaded/day=1/a b.csv"
    assert bucket.identity("s3://loaded/day=1/a b.csv") == identity
    assert bucket.files() == {"loaded/day=1/a b.csv": "1"}
    moved = bucket.s3.head_object(Bucket="loaded", Key="day=1/a b.csv")
    assert (moved["ContentType"], moved["Metadata"]["by"], moved["TagCount"]) == ("text/csv", "ana", 1)
    assert not bucket.s3.list_multipart_uploads(Bucket="loaded").get("Uploads")


def test_an_object_of_parts_keeps_its_identity(bucket: Bucket) -> None:
    where = {"Bucket": "landing", "Key": "in/a.csv"}
    upload = {**where, "UploadId": bucket.s3.create_multipart_upload(**where, Metadata={"by": "ana"})["UploadId"]}
    contents = [b"a" * 5 * 1024**2, b"b" * 5 * 1024**2, b"c"]
    parts = [
        {"PartNumber": n, "ETag": bucket.s3.upload_part(**upload, PartNumber=n, Body=content)["ETag"]}
        for n, content in enumerate(contents, 1)
    ]
    bucket.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    identity = bucket.identity("s3://landing/in/a.csv")
    assert bucket.identity(bucket.move("s3://landing/in/a.csv")) == identity
    assert bucket.files() == {"loaded/a.csv": b"".join(contents).decode()}


def test_an_object_of_unknown_parts_is_copied_in_others(bucket: Bucket) -> None:
    bucket.objects = LoadedObjects(largest=1024**2, part=5 * 1024**2)
    content = "0123456789abcdef" * (700 * 1024)
    path = bucket.put("in/a.csv", content)
    assert bucket.move(path) == "s3://loaded/a.csv" and bucket.files() == {"loaded/a.csv": content}
    bucket.put("in/a.csv", content)
    assert bucket.move(path) == "s3://loaded/a.csv", "its metadata tell that it is the same"


def test_a_copy_within_the_store_keeps_the_same(bucket: Bucket) -> None:
    """Amazon's store copies under both conditions; versitygw supports only the one on the source."""
    bucket.objects._is_amazon = True
    path = bucket.put("in/a.csv", "1", Metadata={"by": "ana"}, ContentType="text/csv", Tagging="k=v")
    identity = bucket.identity(path)
    assert bucket.identity(bucket.move(path)) == identity
    moved = bucket.s3.head_object(Bucket="loaded", Key="a.csv")
    assert (moved["ContentType"], moved["Metadata"]["by"], moved["TagCount"]) == ("text/csv", "ana", 1)


def test_no_object_is_overwritten(bucket: Bucket) -> None:
    path = bucket.put("in/a.csv", "1")
    _, beside = names_at("s3://loaded/a.csv", bucket.identity(path))
    bucket.s3.put_object(Bucket="loaded", Key="a.csv", Body=b"2")
    assert bucket.move(path) == beside
    key = beside.removeprefix("s3://")
    assert bucket.files() == {"loaded/a.csv": "2", key: "1"}
    bucket.put("in/a.csv", "1")
    bucket.s3.put_object(Bucket="loaded", Key=key.removeprefix("loaded/"), Body=b"3")
    with pytest.raises(Unmovable, match="other objects have its names"):
        bucket.move(path)
    assert bucket.files() == {"landing/in/a.csv": "1", "loaded/a.csv": "2", key: "3"}


@pytest.mark.parametrize("when", ["before", "before the copy", "before the deletion"])
def test_an_object_that_is_replaced_stays(bucket: Bucket, when: str) -> None:
    path = bucket.put("in/a.csv", "1")
    identity = bucket.identity(path)
    operation = {"before": "", "before the copy": "GetObject", "before the deletion": "DeleteObject"}[when]
    if operation:
        bucket.once_before(operation, path, lambda: bucket.put("in/a.csv", "2"))
    else:
        bucket.put("in/a.csv", "2")
    with pytest.raises(InputChanged):
        bucket.move(path, identity)
    copied = {"loaded/a.csv": "1"} if operation == "DeleteObject" else {}
    assert bucket.files() == {"landing/in/a.csv": "2", **copied}


def test_an_object_that_appears_at_the_target_meanwhile_is_not_overwritten(bucket: Bucket) -> None:
    path = bucket.put("in/a.csv", "1")
    appear = partial(bucket.s3.put_object, Bucket="loaded", Key="a.csv", Body=b"2")
    bucket.once_before("PutObject", "s3://loaded/a.csv", appear)
    beside = bucket.move(path)
    assert bucket.files() == {"loaded/a.csv": "2", beside.removeprefix("s3://"): "1"}


def test_a_worker_that_is_killed_between_copy_and_deletion(bucket: Bucket) -> None:
    path = bucket.put("in/a.csv", "1")
    arguments = [path, bucket.identity(path), "s3://loaded/a.csv"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert bucket.files() == {"landing/in/a.csv": "1", "loaded/a.csv": "1"}
    assert bucket.move(path) == "s3://loaded/a.csv"
    assert bucket.files() == {"loaded/a.csv": "1"}


def test_two_workers_move_the_same_objects(bucket: Bucket) -> None:
    paths = [bucket.put(f"in/{number}.csv", str(number)) for number in range(12)]
    identities = [bucket.identity(path) for path in paths]

    def move(number: int) -> str:
        try:
            return bucket.move(paths[number], identities[number])
        except InputChanged:  # the other process was faster
            return ""

    with ThreadPoolExecutor(8) as threads:
        moved = set(threads.map(move, [*range(12), *range(12)])) - {""}
    assert moved == {f"s3://loaded/{number}.csv" for number in range(12)}
    assert bucket.files() == {f"loaded/{number}.csv": str(number) for number in range(12)}


def test_a_tag_is_added_to_others(bucket: Bucket) -> None:
    path = bucket.put("in/a.csv", "1", Tagging="k=v")
    for _ in range(2):
        bucket.objects.tag(path, bucket.identity(path))
        assert bucket.tags(path) == {"k": "v", "sluice": "loaded"}
    identity = bucket.identity(path)
    bucket.put("in/a.csv", "2")
    with pytest.raises(InputChanged):
        bucket.objects.tag(path, identity)
    assert bucket.tags(path) == {}


def test_an_object_that_is_replaced_while_it_is_tagged_has_no_tag(bucket: Bucket) -> None:
    path = bucket.put("in/a.csv", "1")
    identity = bucket.identity(path)
    bucket.once_before("GetObjectTagging", path, lambda: bucket.put("in/a.csv", "2", Tagging="k=v"))
    with pytest.raises(InputChanged):
        bucket.objects.tag(path, identity)
    assert bucket.tags(path) == {"k": "v"}


def test_what_the_store_refuses_or_does_not_answer(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bucket.put("in/a.csv", "1")
    identity = bucket.identity(path)
    with pytest.raises(Unmovable, match="the store refuses PutObject: NoSuchBucket"):
        bucket.objects.move(path, identity, "s3://nowhere/a.csv", lambda: None)
    with pytest.raises(InputChanged):
        bucket.move("s3://landing/in/other.csv", identity)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(Unmovable, match="the store refuses HeadObject: 403"):
        LoadedObjects().tag(path, identity)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        LoadedObjects().tag(path, identity)
    assert bucket.files() == {"landing/in/a.csv": "1"}


@pytest.mark.parametrize("after", ["move", "tag"])
async def test_a_landing_zone_in_a_bucket(bucket: Bucket, tmp_path: Path, after: str) -> None:
    more = {"move_to": "s3://loaded/orders/"} if after == "move" else {}
    zone = Zone(tmp_path, **{"from": "s3://landing/in/", "after": after, **more})
    for name in ("a", "day=1/b"):
        bucket.put(f"in/{name}.csv", name)
    zone.list_files()
    (ref,) = zone.list_files(after=60).batches

    def finish() -> FinishArrivalsResult:
        given = FinishArrivalsInput(pipeline=TEXT, held=zone.held)
        return ArrivalFinisher(zone.collector).finish(zone.pipeline, given, lambda _: None)

    assert finish().finished == 0, "main does not hold them"
    paths = [file.path for file in zone.collector.batches.read(ref)]
    assert zone.pipeline.write.source
    await Run(zone.lake, "r1", source_of_files(zone.pipeline.write.source, paths), row=len).load()
    zone.held = []
    assert zone.list_files().to_finish == 2
    assert finish() == FinishArrivalsResult(finished=2)
    assert (zone.list_files().to_finish, finish().finished) == (0, 0)
    files = zone.collector.memory("p").files(None, "", 9)
    shown = {each.path: (each.status, each.after, each.detail) for each in files}
    if after == "move":
        assert bucket.files() == {"loaded/orders/a.csv": "a", "loaded/orders/day=1/b.csv": "day=1/b"}
        assert shown[paths[0]] == ("moved", "", f"to s3://loaded/orders/{paths[0][len('s3://landing/in/') :]}; w-r1")
    else:
        assert [bucket.tags(path) for path in paths] == [{"sluice": "loaded"}] * 2
        assert shown[paths[0]] == ("loaded", "tagged", "w-r1")


def test_named_objects_are_as_a_listing_shows_them(bucket: Bucket) -> None:
    keys = ["named/a.csv", "named/a b+ü%41/b.csv", "named/day=1/c.csv", "named/empty.csv"]
    urls = [bucket.put(key, "" if "empty" in key else "1") for key in [*keys, "named/_hidden.csv", "named2/d.csv"]]
    time.sleep(1.1)
    bucket.put(keys[0], "1")  # the same content, modified later
    listed = {file.path: file for file in list_arriving("s3://landing/named/")}
    assert sorted(listed) == sorted(urls[: len(keys)])
    odd = ["s3://landing/named/missing.csv", "s3://landing/named//a.csv", "s3://landing/named/../named/a.csv", "x"]
    for each in [*urls, *odd]:
        shown = find_arriving("s3://landing/named/", [each])
        assert shown == [listed[each]] if each in listed else not shown, each
    assert find_arriving("s3://landing/named/", urls) == sorted(listed.values(), key=lambda file: file.path)
    assert find_arriving("s3://landing/named/", [f"s3://landing/named/{number}" for number in range(21)]) is None
    assert find_arriving("s3://no-such-bucket/named/", ["s3://no-such-bucket/named/a.csv"]) in (None, [])
