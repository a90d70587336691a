"""The `arrival` of a pipeline: the landing zone whose files start runs, and when they do."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from sluice.base_model import Model
from sluice.durations import Duration, format_duration
from sluice.sizes import format_size

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip
_LARGEST = 10**15
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_FILE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_SCHEMES = ("s3", "s3a", "s3n", "gs", "az", "abfs", "abfss", "adl", "azure", "file")
_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)
Overwritten = Literal["load", "ignore", "alert"]
"""What becomes of a file of a path that was loaded before, with other content."""


def _bytes(value: object) -> int:
    match = _SIZE.fullmatch(str(value))
    size = float(match[1]) * _UNITS.get(match[2].upper(), 0) if match else 0
    if not 1 <= size <= _LARGEST:
        raise ValueError(f"{str(value)[:100]!r} is no size: write 500MB, 10GiB or a number of bytes, up to 1000TB")
    return int(size)


def _without_every(value: object) -> object:
    return value.strip().removeprefix("every").strip() if isinstance(value, str) else value


class BatchLimits(Model):
    """When a batch is full, so that it is loaded although files still arrive."""

    files: int = Field(default=500, ge=1, le=2000)
    bytes: Annotated[int, BeforeValidator(_bytes)] = 10 * 2**30
    wait: Duration = 15 * 60.0
    """The seconds after the arrival of its first file when a batch closes, with the files that are settled by then."""


class Arrival(Model):
    """A landing zone."""

    from_: str = Field(alias="from", min_length=1)
    """A folder, a prefix of a bucket, or a pattern."""
    settle: Duration = 60.0
    """A batch closes when no file arrived or changed for so many seconds."""
    manifest: str | None = None
    """The name of a file that closes the batch of its folder instead, such as `_SUCCESS`: what comes later settles."""
    batch: BatchLimits = BatchLimits()
    look: Duration = 300.0
    """The seconds between two listings, whatever notifications tell."""
    follow_links: bool = False
    """Whether symbolic links are followed that lead out of the landing zone."""
    overwritten: Overwritten = "alert"
    at_once: int = Field(default=1, ge=1, le=20)
    """So many batches of this pipeline are loaded at a time, the oldest first."""
    on_failure: Literal["continue", "pause"] = "continue"
    """Whether batches behind one that failed are loaded."""
    expect: Annotated[Duration, BeforeValidator(_without_every)] | None = None
    """Slack is told when no file to load arrived for so many seconds."""
    after: Literal["keep", "tag", "move"] = "keep"
    """What is done with a file when main holds it."""
    move_to: str | None = Field(default=None, min_length=1)
    """The folder or prefix that files are moved to, outside of the landing zone."""

    model_config = {**Model.model_config, "populate_by_name": True, "serialize_by_alias": True}

    @field_validator("from_")
    @classmethod
    def _is_a_folder_or_a_store(cls, from_: str) -> str:
        scheme = from_.split("://", 1)[0].lower() if "://" in from_ else ""
        if scheme and scheme not in _SCHEMES:
            raise ValueError(f"{from_} is neither a folder nor in a store that can be listed: {', '.join(_SCHEMES)}")
        return from_

    @field_validator("manifest")
    @classmethod
    def _only_a_name(cls, manifest: str | None) -> str | None:
        if manifest is not None and not _FILE_NAME.fullmatch(manifest):
            raise ValueError(f"{manifest!r} is no name of a file: write one such as _SUCCESS, without a folder")
        return manifest

    @model_validator(mode="after")
    def _after_is_possible(self) -> "Arrival":
        if self.after == "tag" and not _S3.match(self.from_):
            raise ValueError(
                f"after: tag sets a tag of an object in S3, and `from: {self.from_}` is not in S3: use keep or move"
            )
        if self.after == "move" and self.move_to is None:
            raise ValueError("after: move needs `move_to`, the folder or prefix that loaded files are moved to")
        if self.after != "move" and self.move_to is not None:
            raise ValueError(f"move_to is for `after: move`, and it is `after: {self.after}`")
        if self.move_to is not None:
            _check_move_to(self.from_, self.move_to)
        return self

    def properties(self) -> dict[str, str]:
        """Return what a person compares two landing zones by."""
        batch = f"{self.batch.files:,} files, {format_size(self.batch.bytes)}, {format_duration(self.batch.wait)}"
        expect = f"every {format_duration(self.expect)}" if self.expect else "nothing"
        return {
            "from": self.from_,
            **({"manifest": self.manifest} if self.manifest else {}),
            "settle": format_duration(self.settle),
            "batch": batch,
            "look": format_duration(self.look),
            "follow links": "yes" if self.follow_links else "no",
            "overwritten": self.overwritten,
            "at once": str(self.at_once),
            "on failure": self.on_failure,
            "expect": expect,
            "after": f"move to {self.move_to}" if self.move_to else self.after,
        }

    @property
    def done(self) -> str:
        """What was done with a file that main holds, in one word; empty where files are kept as they are."""
        return {"keep": "", "tag": "tagged", "move": "moved"}[self.after]


def _check_move_to(from_: str, to: str) -> None:
    """Make sure that files can be moved from one to the other, as far as their names tell.

    Raises:
        ValueError: they cannot.
    """
    kinds = {_kind(from_), _kind(to)}
    if kinds not in ({"folder"}, {"S3"}):
        raise ValueError(
            f"after: move is possible from folder to folder and from S3 to S3, not from {from_} to {to}: use keep"
        )
    if ({".", ".."} & set(to.split("/")) and kinds == {"S3"}) or re.search(r"[*?\[]", to):
        raise ValueError(f"move_to: {to} is no folder: write its path without wildcards and without `..`")


def _kind(path: str) -> str:
    if _S3.match(path):
        return "S3"
    return "folder" if "://" not in path or path.startswith("file:") else "another store"


def with_source_of_arrival(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return a pipeline as written, whose source has the path of its arrival where it has none.

    An arrival that is not valid gives a path, too: the error is that of the arrival, and not that there is no path.
    """
    arrival, write = pipeline.get("arrival"), pipeline.get("write")
    source = write.get("source", {}) if isinstance(write, dict) else None
    if "arrival" not in pipeline or not isinstance(source, dict) or "path" in source or not isinstance(write, dict):
        return pipeline
    stated = arrival.get("from") if isinstance(arrival, dict) else None
    path = stated if isinstance(stated, str) and stated else "arrival"
    return {**pipeline, "write": {**write, "source": {**source, "path": path}}}
