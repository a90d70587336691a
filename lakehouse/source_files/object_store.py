"""List, identify and read source files in an object store (S3 and compatible ones, Google, Azure)."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from lakehouse.source_files.listing import CHUNK, ListedFile, changed, empty, vanished
from lakehouse.source_files.paths import has_wildcards, is_hidden, path_matches
from lakehouse.source_files.s3_client import list_keys
from lakehouse.source_files.store_errors import map_store_errors
from sluice.errors import InvalidInput

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

SCHEMES = ("s3", "s3a", "s3n", "gs", "az", "abfs", "abfss", "adl", "azure")
_CONTENT_ETAG = re.compile(r'"?([0-9a-f]{32}(?:-[0-9]{1,5})?)"?', re.IGNORECASE)
"""An MD5, or the MD5 of the MD5s of an upload's parts with their number.

If the store encrypts with a key, it is a random number of the same form. Equal objects then have different identities,
but different objects never have equal ones.
"""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ObjectState = tuple[str, int, str, float, str]
"""Path, size in bytes, text of the state, time of the last modification, and the reason if it cannot be read."""
_RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}


def list_objects(path: str) -> Iterator[ListedFile]:
    """List an object, all objects of a folder, or the objects and folders that match a pattern.

    An existing key is taken literally, even if it could be a pattern.

    Raises:
        InvalidInput: the store refuses, or an object that Spark would ignore is named.
        ServiceUnavailable: the store does not answer.
    """
    import obstore  # noqa: PLC0415  # only sources in a store need it

    bucket, key = split_url(path)
    with map_store_errors(path):
        store = open_store(bucket)
        try:
            if key and not path.endswith("/"):
                yield _describe(store, bucket, obstore.head(store, key), named=True)
                return
        except FileNotFoundError:
            pass
        parts = [part for part in key.split("/") if part]
        literal = list(_below(store, bucket, parts, []))
        if literal or not has_wildcards(key):
            yield from literal
            return
        fixed = next(number for number, part in enumerate(parts) if has_wildcards(part))
        yield from _below(store, bucket, parts[:fixed], parts[fixed:])


def list_object_states(path: str) -> Iterator[ObjectState]:
    """List the objects below a prefix, or those that match a pattern.

    Returns:
        For each object its path, its size in bytes, a text of its state, the time of its last modification in seconds
        since 1970, and the reason if it cannot be read. An object may be listed twice.

    Raises:
        InvalidInput: the store refuses.
        ServiceUnavailable: the store does not answer.
    """
    import obstore  # noqa: PLC0415
    from obstore.exceptions import InvalidPathError  # noqa: PLC0415

    bucket, key = split_url(path)
    parts = [part for part in key.split("/") if part]
    fixed = next((number for number, part in enumerate(parts) if has_wildcards(part)), len(parts))
    with map_store_errors(path):
        store = open_store(bucket)
        try:
            for page in obstore.list(store, "/".join(parts[:fixed]) or None):
                for each in page:
                    if path_matches(each["path"].split("/")[fixed:], parts[fixed:]):
                        yield f"{bucket}/{each['path']}", each["size"], *_state_of(each), ""
            return
        except InvalidPathError:
            if not bucket.lower().startswith("s3"):
                raise
    yield from _list_any_keys(bucket, parts[:fixed], parts[fixed:])


def _list_any_keys(bucket: str, folder: list[str], pattern: list[str]) -> Iterator[ObjectState]:
    """List the objects of a folder like `list_object_states`, even if obstore refuses one of their keys."""
    for each in list_keys(bucket, "/".join([*folder, ""])):
        key, size = each["Key"].removesuffix("/"), each["Size"]
        below = key.split("/")[len(folder) :]
        problem = next(filter(None, map(_key_problem, below)), "")
        if not problem and size and key != each["Key"]:
            problem = "its key ends in a slash: rename it"
        if path_matches(below, pattern) or (problem and not pattern):
            meta = {"e_tag": each["ETag"], "last_modified": each["LastModified"]}
            yield f"{bucket}/{key}", size, *_state_of(meta), problem


def find_object_states(path: str, urls: Iterable[str]) -> Iterator[ObjectState]:
    """Yield the states of some objects below a prefix like `list_object_states`, by one request for each.

    Raises:
        InvalidInput: the store refuses.
        ServiceUnavailable: the store does not answer.
    """
    import obstore  # noqa: PLC0415

    bucket, prefix = split_url(path)
    start = f"{bucket}/{prefix}".rstrip("/") + "/"
    with map_store_errors(path):
        store = open_store(bucket)
        for url in urls:
            below = url.removeprefix(start).split("/")
            if not url.startswith(start) or not path_matches(below, []) or not all(below):
                continue
            with contextlib.suppress(FileNotFoundError):
                meta = obstore.head(store, split_url(url)[1])
                yield url, meta["size"], *_state_of(meta), ""


def _state_of(meta: Mapping[str, Any]) -> tuple[str, int]:
    """Return an object's state from fields that are the same in a listing and in a request for the object alone.

    The second value is the time of its last modification.

    Only a listing has fractions of seconds, and only a request for the object has the version.
    """
    written_at = int(meta["last_modified"].timestamp())
    return f"{meta['e_tag']}:{written_at}", written_at


def _key_problem(part: str) -> str:
    """Return why obstore and Spark cannot read an object with this part in its key."""
    if part in ("", ".", ".."):
        return f"its key has the part {part!r} between slashes: rename it"
    return "its key has control characters: rename it" if _CONTROL.search(part) else ""


def object_exists(path: str) -> bool:
    """Return True if a store has an object of this path.

    Raises:
        InvalidInput: the store refuses.
        ServiceUnavailable: the store does not answer.
    """
    import obstore  # noqa: PLC0415

    bucket, key = split_url(path)
    with map_store_errors(path):
        try:
            obstore.head(open_store(bucket), key)
            return True
        except FileNotFoundError:
            return False


def describe_object(path: str) -> ListedFile:
    """Return one object of a store.

    Raises:
        InvalidInput: it does not exist.
        ServiceUnavailable: the store does not answer.
    """
    import obstore  # noqa: PLC0415

    bucket, key = split_url(path)
    with map_store_errors(path):
        try:
            store = open_store(bucket)
            return _describe(store, bucket, obstore.head(store, key))
        except FileNotFoundError:
            raise vanished(path) from None


def split_url(path: str) -> tuple[str, str]:
    """Return the URL of the bucket, and the key, which may contain characters that other URLs may not."""
    scheme, rest = path.split("://", 1)
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key.strip("/")


def open_store(bucket: str) -> "ObjectStore":
    """Open the store of a bucket, with the credentials and the endpoint of the environment."""
    from obstore.store import from_url  # noqa: PLC0415

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: Any = {"connect_timeout": "10s", "timeout": "120s", "allow_http": endpoint.startswith("http://")}
    url = re.sub(r"^s3[an]://", "s3://", bucket)
    store: ObjectStore = from_url(url, client_options=options, retry_config=_RETRIES)
    return store


def _below(store: "ObjectStore", bucket: str, folder: list[str], pattern: list[str]) -> Iterator[ListedFile]:
    """Yield the objects of a folder, at any depth, whose path below it matches a pattern."""
    import obstore  # noqa: PLC0415

    prefix = "/".join(folder)
    for page in obstore.list(store, prefix or None):
        for each in page:
            parts = each["path"].split("/")[len(folder) :]
            if not parts or (each["size"] == 0 and not PurePosixPath(each["path"]).suffix):
                continue  # an empty object: some tools mark a folder by one
            if path_matches(parts, pattern):
                yield _describe(store, bucket, each, named=bool(pattern) and is_hidden(parts[-1]))


def _describe(store: "ObjectStore", bucket: str, meta: "ObjectMeta", named: bool = False) -> ListedFile:
    path = f"{bucket}/{meta['path']}"
    if named and is_hidden(PurePosixPath(meta["path"]).name):
        raise InvalidInput(
            f"{path} would be ignored by Spark, like every file whose name begins with '_' or '.' or ends in "
            "'._COPYING_': rename it"
        )
    if meta["size"] == 0:
        raise empty(path)
    return ListedFile(
        path,
        meta["size"],
        read=lambda: _read(store, path, meta),
        read_tail=lambda size: _read_tail(store, path, meta, size),
        state=lambda: _state(store, path, meta["path"]),
        store_identity=store_identity(path, meta["size"], meta["e_tag"], meta["version"]),
    )


def store_identity(path: str, size: int, etag: str | None, version: str | None) -> str:
    """Return the identity of an object from its store's description; empty if that does not identify it.

    An ETag that is a checksum identifies the content at any path. Any other ETag, and a version, identify only this
    object.
    """
    if etag and (checksum := _CONTENT_ETAG.fullmatch(etag)):
        return f"etag:{checksum[1].lower()}:{size}"
    if etag or version:
        parts = [re.sub(r"^s3[an]://", "s3://", path), etag, version, size]
        return f"object:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"
    return ""


def _state(store: "ObjectStore", path: str, key: str) -> tuple[object, ...]:
    import obstore  # noqa: PLC0415

    with map_store_errors(path):
        try:
            now = obstore.head(store, key)
        except FileNotFoundError:
            raise vanished(path) from None
    return now["size"], now["e_tag"], now["version"], now["last_modified"]


def _read(store: "ObjectStore", path: str, meta: "ObjectMeta") -> Iterator[bytes]:
    import obstore  # noqa: PLC0415
    from obstore.exceptions import PreconditionError  # noqa: PLC0415

    with map_store_errors(path):
        try:
            options: Any = {"if_match": meta["e_tag"]} if meta["e_tag"] else {}
            for piece in obstore.get(store, meta["path"], options=options).stream(min_chunk_size=CHUNK):
                yield bytes(piece)
        except FileNotFoundError:
            raise vanished(path) from None
        except PreconditionError:
            raise changed(path, "was replaced") from None


def _read_tail(store: "ObjectStore", path: str, meta: "ObjectMeta", size: int) -> bytes:
    import obstore  # noqa: PLC0415

    with map_store_errors(path):
        try:
            return bytes(obstore.get_range(store, meta["path"], start=meta["size"] - size, length=size))
        except FileNotFoundError:
            raise vanished(path) from None
