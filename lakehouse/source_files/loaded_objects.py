"""Tag or move S3 objects that are loaded on main, without overwriting or losing any.

An object is copied on the conditions that it still has its ETag and that the target has no object. It is deleted on the
first of these conditions. If the store allows it, a copy consists of the same parts and so has the same ETag, which
Sluice then uses to recognise the content. The metadata of a copy records the identity in any case.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from lakehouse.source_files.listing import CHUNK, changed, vanished
from lakehouse.source_files.moving import Unmovable, names_at
from lakehouse.source_files.object_store import split_url, store_identity
from lakehouse.source_files.s3_client import error_code, map_passing_errors, open_client, store_endpoint

TAG, TAG_VALUE = "sluice", "loaded"
_IN_MEMORY = 16 * 1024**2
_OF_PARTS = re.compile(r'"?[0-9a-f]{32}-(\d{1,5})"?')
"""ETag of an object that was uploaded in parts, with the number of parts."""
_IDENTITY = "sluice-identity"
"""Metadata key of a moved object with its identity in the landing zone."""
_KEPT = (
    *("CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Expires"),
    "StorageClass",
)
_MISSING = ("404", "NoSuchKey", "NotFound", "NoSuchVersion")
_NOT_MET = ("412", "PreconditionFailed")
_NO_UPLOAD = "NoSuchUpload"


class LoadedObjects:
    """Client that tags and moves objects, with the credentials and the endpoint of the environment.

    Args:
        largest: maximum size that a store copies in one piece, in bytes.
        part: size of a copied part if the object's own parts are unknown, in bytes. By default, 10,000 parts exceed the
            largest object.
    """

    def __init__(self, largest: int = 5 * 1024**3, part: int = 1024**3) -> None:
        self._largest, self._part = largest, part
        self._is_amazon = store_endpoint() is None
        self._s3: Any = open_client()

    def move(self, path: str, identity: str, target: str, progress: Callable[[], None]) -> str:
        """Move an object if it still has an identity; return its new path.

        Args:
            target: the path to move to, unless an object of other content has it.
            progress: called between the parts of a large object. Any error that it raises stops the copy.

        Raises:
            InputChanged: the object no longer exists, or has another identity.
            Unmovable: the store refuses.
            ServiceUnavailable: the store does not answer.
        """
        with _errors(path):
            head = self._head_of(path, identity)
            for name in names_at(target, identity):
                if self._has(name, head, identity) or self._copy(path, name, head, identity, progress):
                    self._delete(path, identity)
                    return name
        raise Unmovable(f"other objects have its names in {target.rpartition('/')[0]}: move them elsewhere")

    def tag(self, path: str, identity: str) -> None:
        """Add the tag to an object if it still has an identity. Its other tags stay.

        Raises:
            InputChanged: the object no longer exists, or has another identity.
            Unmovable: the store refuses.
            ServiceUnavailable: the store does not answer.
        """
        with _errors(path):
            head = self._head_of(path, identity)
            version = {"VersionId": head["VersionId"]} if "VersionId" in head else {}
            tags = self._call("get_object_tagging", path, **version)["TagSet"]
            others = [tag for tag in tags if tag["Key"] != TAG]
            if {"Key": TAG, "Value": TAG_VALUE} not in tags:
                tagged = [*others, {"Key": TAG, "Value": TAG_VALUE}]
                self._call("put_object_tagging", path, Tagging={"TagSet": tagged}, **version)
            if self._call("head_object", path)["ETag"] != head["ETag"] and not version:
                self._remove_tag(path)  # it was replaced meanwhile, and the new object is not loaded
                raise changed(path)

    def _delete(self, path: str, identity: str) -> None:
        """Delete an object that was copied. An object that replaced it stays."""
        try:
            head = self._head_of(path, identity)  # some stores ignore the condition of a deletion
            self._call("delete_object", path, IfMatch=head["ETag"])
        except Exception as error:
            if error_code(error) not in _MISSING:  # deleted by another worker, or by an earlier try with a lost answer
                raise

    def _remove_tag(self, path: str) -> None:
        tags = self._call("get_object_tagging", path)["TagSet"]
        others = [tag for tag in tags if tag["Key"] != TAG]
        self._call("put_object_tagging", path, Tagging={"TagSet": others})

    def _head_of(self, path: str, identity: str) -> dict[str, Any]:
        """Return the store's description of an object, if it has the identity.

        Raises:
            InputChanged: it has another identity.
        """
        head: dict[str, Any] = self._call("head_object", path)
        if store_identity(path, head["ContentLength"], head.get("ETag"), head.get("VersionId")) != identity:
            raise changed(path)
        return head

    def _has(self, target: str, head: dict[str, Any], identity: str) -> bool:
        """Return True if the target has an object of this content: moved before, or a copy with the same ETag.

        Raises:
            ClientError: the store refuses to say.
        """
        try:
            there = self._call("head_object", target)
        except Exception as error:
            if error_code(error) in _MISSING:
                return False
            raise
        if there["ContentLength"] != head["ContentLength"]:
            return False
        here = store_identity(target, there["ContentLength"], there.get("ETag"), None)
        return here == identity or there.get("Metadata", {}).get(_IDENTITY) == identity

    def _copy(self, path: str, target: str, head: dict[str, Any], identity: str, progress: Callable[[], None]) -> bool:
        """Copy an object to a free path; return True if the path has its content afterwards."""
        kept = {name: head[name] for name in _KEPT if name in head}
        if head.get("TagCount"):
            tags = self._call("get_object_tagging", path)["TagSet"]
            kept["Tagging"] = urlencode([(tag["Key"], tag["Value"]) for tag in tags])
        kept["Metadata"] = {**head.get("Metadata", {}), _IDENTITY: identity}
        in_parts = head["ContentLength"] > self._largest or _OF_PARTS.fullmatch(head["ETag"])
        try:
            if in_parts:
                self._copy_parts(path, target, head, kept, progress)
            elif self._is_amazon:
                self._copy_in_store(path, target, head, kept)
            else:
                self._copy_whole(path, target, head, kept, progress)
        except Exception as error:
            if error_code(error) not in (*_NOT_MET, _NO_UPLOAD):
                raise
            # Another worker was faster, an answer was lost, the target has another object, or this object changed.
            has_it = self._has(target, self._head_of(path, identity), identity)
            if not has_it and error_code(error) == _NO_UPLOAD:
                raise
            return has_it
        return True

    def _copy_in_store(self, path: str, target: str, head: dict[str, Any], kept: dict[str, Any]) -> None:
        conditions = {"CopySourceIfMatch": head["ETag"], "IfNoneMatch": "*"}
        replaced = {"MetadataDirective": "REPLACE", "TaggingDirective": "REPLACE" if "Tagging" in kept else "COPY"}
        self._call("copy_object", target, CopySource=_source(path), **conditions, **replaced, **kept)

    def _copy_whole(
        self, path: str, target: str, head: dict[str, Any], kept: dict[str, Any], progress: Callable[[], None]
    ) -> None:
        """Read an object and write it: stores other than Amazon's may ignore a copy's condition on its target."""
        body = self._call("get_object", path, IfMatch=head["ETag"])["Body"]
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            for piece in body.iter_chunks(CHUNK):
                progress()
                file.write(piece)
            file.seek(0)
            self._call("put_object", target, Body=file, IfNoneMatch="*", **kept)

    def _copy_parts(
        self, path: str, target: str, head: dict[str, Any], kept: dict[str, Any], progress: Callable[[], None]
    ) -> None:
        """Copy an object part by part within the store."""
        id = self._call("create_multipart_upload", target, **kept)["UploadId"]
        try:
            parts = []
            for number, (start, size) in enumerate(self._parts(path, head), 1):
                progress()
                copied = self._call(
                    "upload_part_copy",
                    target,
                    UploadId=id,
                    PartNumber=number,
                    CopySource=_source(path),
                    CopySourceIfMatch=head["ETag"],
                    CopySourceRange=f"bytes={start}-{start + size - 1}",
                )
                parts.append({"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]})
            done = {"UploadId": id, "MultipartUpload": {"Parts": parts}, "IfNoneMatch": "*"}
            self._call("complete_multipart_upload", target, **done)
        except BaseException:
            self._abort(target, id)
            raise

    def _parts(self, path: str, head: dict[str, Any]) -> list[tuple[int, int]]:
        """Return the start and size of each part of an object: the uploaded parts if the store knows them."""
        whole, match = head["ContentLength"], _OF_PARTS.fullmatch(head["ETag"])
        size = self._part
        if match:
            first = self._call("head_object", path, PartNumber=1, IfMatch=head["ETag"])["ContentLength"]
            if -(-whole // first) == int(match[1]):  # all have one size, except the last
                size = first
        return [(start, min(size, whole - start)) for start in range(0, whole, size)]

    def _abort(self, target: str, id: str) -> None:
        try:
            self._call("abort_multipart_upload", target, UploadId=id)
        except Exception as error:
            if not error_code(error) and not type(error).__module__.startswith("botocore"):
                raise

    def _call(self, operation: str, path: str, **arguments: Any) -> Any:
        bucket, key = _bucket_and_key(path)
        return getattr(self._s3, operation)(Bucket=bucket, Key=key, **arguments)


def _source(path: str) -> dict[str, str]:
    bucket, key = _bucket_and_key(path)
    return {"Bucket": bucket, "Key": key}


def _bucket_and_key(path: str) -> tuple[str, str]:
    bucket, key = split_url(path)
    return bucket.split("://", 1)[1], key


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Map errors of the store: refusals become `Unmovable`, temporary errors are retried."""
    from botocore.exceptions import ClientError  # noqa: PLC0415

    try:
        with map_passing_errors(path):
            yield
    except ClientError as error:
        code = error_code(error)
        if code in _MISSING:
            raise vanished(path) from None
        if code in _NOT_MET:
            raise changed(path) from None
        raise Unmovable(f"the store refuses {error.operation_name}: {code}") from error
