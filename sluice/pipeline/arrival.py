"""The `arrival` of a pipeline: the landing zone whose files start runs, and its batches."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from sluice.base_model import StrictModel
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
"""Reaction to a file with new content at a path that was loaded before."""


def _bytes(value: object) -> int:
    match = _SIZE.fullmatch(str(value))
    size = float(match[1]) * _UNITS.get(match[2].upper(), 0) if match else 0
    if not 1 <= size <= _LARGEST:
        raise ValueError(f"{str(value)[:100]!r} is not a size: write 500MB, 10GiB or a number of bytes, up to 1000TB")
    return int(size)


def _without_every(value: object) -> object:
    return value.strip().removeprefix("every").strip() if isinstance(value, str) else value


class BatchLimits(StrictModel):
    """Limits at which a batch closes although files still arrive."""

    files: int = Field(default=500, ge=1, le=2000)
    bytes: Annotated[int, BeforeValidator(_bytes)] = 10 * 2**30
    wait: Duration = 15 * 60.0
    """Maximum age of a batch, in seconds since its first file arrived. It closes with the files settled by then."""


class Arrival(StrictModel):
    """A landing zone."""

    from_: str = Field(alias="from", min_length=1)
    """A folder, a prefix of a bucket, or a pattern."""
    settle: Duration = 60.0
    """Time without a new or changed file after which a batch closes, in seconds."""
    manifest: str | None = None
    """Name of a file, such as `_SUCCESS`, that closes the batch of its folder instead. Only later files settle."""
    batch: BatchLimits = BatchLimits()
    look: Duration = 300.0
    """Maximum time between two listings, in seconds. A notification only leads to an earlier one."""
    follow_links: bool = False
    """True if listings follow symbolic links that lead out of the landing zone."""
    overwritten: Overwritten = "alert"
    at_once: int = Field(default=1, ge=1, le=20)
    """Maximum number of batches of this pipeline that load at a time, the oldest first."""
    on_failure: Literal["continue", "pause"] = "continue"
    """Reaction to a failed batch: load the batches behind it, or pause the landing zone."""
    expect: Annotated[Duration, BeforeValidator(_without_every)] | None = None
    """Time without a file to load after which Slack gets a message, in seconds."""
    after: Literal["keep", "tag", "move"] = "keep"
    """Treatment of a file once main contains it."""
    move_to: str | None = Field(default=None, min_length=1)
    """The folder or prefix that receives moved files, outside of the landing zone."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @field_validator("from_")
    @classmethod
    def _is_a_folder_or_a_store(cls, from_: str) -> str:
        scheme = from_.split("://", 1)[0].lower() if "://" in from_ else ""
        if scheme and scheme not in _SCHEMES:
            raise ValueError(f"{from_} is neither a folder nor in a store that Sluice can list: {', '.join(_SCHEMES)}")
        return from_

    @field_validator("manifest")
    @classmethod
    def _only_a_name(cls, manifest: str | None) -> str | None:
        if manifest is not None and not _FILE_NAME.fullmatch(manifest):
            raise ValueError(
                f"{manifest!r} is not a valid name of a file: write one such as _SUCCESS, without a folder"
            )
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
            raise ValueError(f"move_to goes with `after: move`, and the pipeline has `after: {self.after}`")
        if self.move_to is not None:
            _check_move_to(self.from_, self.move_to)
        return self

    def properties(self) -> dict[str, str]:
        """Return the settings as text, by name, so that a person can compare two landing zones."""
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
        """State of a loaded file after its treatment: `tagged` or `moved`; empty if files stay as they are."""
        return {"keep": "", "tag": "tagged", "move": "moved"}[self.after]


def _check_move_to(from_: str, to: str) -> None:
    """Make sure that files can be moved from one path to another, as far as the paths show.

    Raises:
        ValueError: files cannot be moved.
    """
    kinds = {_kind(from_), _kind(to)}
    if kinds not in ({"folder"}, {"S3"}):
        raise ValueError(
            f"after: move is possible from folder to folder and from S3 to S3, not from {from_} to {to}: use keep"
        )
    if ({".", ".."} & set(to.split("/")) and kinds == {"S3"}) or re.search(r"[*?\[]", to):
        raise ValueError(f"move_to: {to} is not a folder: write its path without wildcards and without `..`")


def _kind(path: str) -> str:
    if _S3.match(path):
        return "S3"
    return "folder" if "://" not in path or path.startswith("file:") else "another store"


def with_source_of_arrival(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return a pipeline as written, with the path of its arrival as that of its source if the source has none.

    An invalid arrival also gives a path, so that the error is about the arrival and not about a missing path.
    """
    arrival, write = pipeline.get("arrival"), pipeline.get("write")
    source = write.get("source", {}) if isinstance(write, dict) else None
    if "arrival" not in pipeline or not isinstance(source, dict) or "path" in source or not isinstance(write, dict):
        return pipeline
    stated = arrival.get("from") if isinstance(arrival, dict) else None
    path = stated if isinstance(stated, str) and stated else "arrival"
    return {**pipeline, "write": {**write, "source": {**source, "path": path}}}
