"""The input manifest: the files that a run was started for, which of them it loads, and why others are left out."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Literal

from sluice.base_model import Model
from sluice.errors import ManifestUnreadable
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.write_modes import LoadedFilePolicy

LeftOut = Literal["loaded before", "same content"]
VERSION = 1


class ManifestFile(Model):
    """One file that a source matches: one line of the manifest."""

    path: str
    size: int
    identity: str
    left_out: LeftOut | None = None
    """Why it is not loaded; None for a file that is."""
    by: str = ""
    """The id of the run that loaded it before, or the path of the file with the same content."""
    scope: LoadScope = NO_SCOPE
    """The partition and the scheduled time that it is loaded for."""


class ManifestHeader(Model):
    """The first line of a manifest: whose files these are."""

    version: int = VERSION
    run_id: str
    workflow_id: str
    pipeline: str
    attempt: int
    base: str
    """The hash of main at which the files were selected."""
    tables: list[str]
    policy: LoadedFilePolicy
    again: bool
    one_content_per_path: bool = False
    """Whether none of these files may be published while main holds other content of its path."""
    input_digest: str
    order_matters: bool = False
    """Whether rows of a later load take the place of those of an earlier one."""


class InputManifest(Model):
    """A whole manifest."""

    header: ManifestHeader
    files: list[ManifestFile]

    @property
    def loaded(self) -> list[ManifestFile]:
        """The files that the run loads."""
        return [file for file in self.files if file.left_out is None]

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON lines: its header, and a line for each file."""
        return b"".join(self._lines())

    def _lines(self) -> Iterator[bytes]:
        yield _line(self.header.model_dump())
        for file in self.files:
            yield _line(file.model_dump(exclude_defaults=True))


def manifest_digest(content: bytes) -> str:
    """Return the SHA-256 by which a commit on main names a manifest."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(content: bytes, location: str, digest: str) -> InputManifest:
    """Return the manifest that these bytes are, if they are the ones that were written.

    Raises:
        ManifestUnreadable: they are not.
    """
    if manifest_digest(content) != digest:
        raise ManifestUnreadable(
            f"the input manifest {location} is not the one that was written (its SHA-256 is "
            f"{manifest_digest(content)[:12]}, not {digest[:12]}): restore it from a backup"
        )
    first, *rest = content.splitlines()
    header = ManifestHeader.model_validate_json(first)
    return InputManifest(header=header, files=[ManifestFile.model_validate_json(line) for line in rest])


def total_bytes(files: Sequence[ManifestFile]) -> int:
    """Return how much these files hold."""
    return sum(file.size for file in files)


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
