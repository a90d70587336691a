"""Input manifest: the files for which a run was started, those that it loads, and why it leaves others out."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import ValidationError

from sluice.base_model import StrictModel
from sluice.errors import ManifestUnreadable
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.write_modes import LoadedFilePolicy, Replaced

LeftOut = Literal["loaded before", "same content"]
VERSION = 1


class ManifestFile(StrictModel):
    """One file that a source matches: one line of the manifest."""

    path: str
    size: int
    identity: str
    left_out: LeftOut | None = None
    """Reason why the file is not loaded; None for a file that is."""
    by: str = ""
    """Id of the run that loaded it before, or path of the file with the same content."""
    scope: LoadScope = NO_SCOPE
    """Partition and scheduled time for which it is loaded."""


class PublishedInput(StrictModel):
    """The input of one run: the identity of its files, and the partition and scheduled time of the load."""

    digest: str
    scope: LoadScope = NO_SCOPE


class ManifestHeader(StrictModel):
    """First line of a manifest: the run to which the files belong, and its options."""

    version: int = VERSION
    run_id: str
    workflow_id: str
    pipeline: str
    attempt: int
    base: str
    """Hash of main at which the files were selected."""
    tables: list[str]
    policy: LoadedFilePolicy
    again: bool
    one_content_per_path: bool = False
    """True if no file may be published while main contains other content of its path."""
    loads_all_contents: bool = False
    """True if a file is published although other content of its path was loaded meanwhile."""
    input_digest: str
    partitions: list[PublishedInput] = []
    """Inputs of the partitions of a joint publish."""
    order_matters: bool = False
    """True if rows of a later load replace those of an earlier one."""
    replaces: Replaced = ""
    """Scope that each load of the pipeline replaces."""

    @property
    def wants_all_contents(self) -> bool:
        """True if each content of a path is wanted: main may have several."""
        return self.policy == "reload" or self.loads_all_contents


class InputManifest(StrictModel):
    """A whole manifest."""

    header: ManifestHeader
    files: list[ManifestFile]

    @property
    def loaded(self) -> list[ManifestFile]:
        """Files that the run loads."""
        return [file for file in self.files if file.left_out is None]

    @property
    def inputs(self) -> list[PublishedInput]:
        """Inputs that the run publishes: its own, or those of all partitions for a joint publish."""
        scope = self.files[0].scope if self.files else NO_SCOPE
        return self.header.partitions or [PublishedInput(digest=self.header.input_digest, scope=scope)]

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON lines: its header, then one line for each file."""
        return b"".join(self._lines())

    def _lines(self) -> Iterator[bytes]:
        # without defaults, since a worker of an earlier release refuses keys that it does not know
        yield _line({"version": self.header.version, **self.header.model_dump(exclude_defaults=True)})
        for file in self.files:
            yield _line(file.model_dump(exclude_defaults=True))


def manifest_digest(content: bytes) -> str:
    """Return the SHA-256 of a manifest, as commits on main name it."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(content: bytes, location: str, digest: str) -> InputManifest:
    """Parse a manifest after a check of its digest.

    Raises:
        ManifestUnreadable: the bytes are not those that were written, or a later release wrote them.
    """
    if manifest_digest(content) != digest:
        raise ManifestUnreadable(
            f"the input manifest {location} is not the one that was written (its SHA-256 is "
            f"{manifest_digest(content)[:12]}, not {digest[:12]}): restore it from a backup"
        )
    first, *rest = content.splitlines()
    try:
        header = ManifestHeader.model_validate_json(first)
        return InputManifest(header=header, files=[ManifestFile.model_validate_json(line) for line in rest])
    except ValidationError as error:
        raise ManifestUnreadable(
            f"the input manifest {location} is of a later release of Sluice: upgrade this worker"
        ) from error


def total_bytes(files: Sequence[ManifestFile]) -> int:
    """Return the total size of these files, in bytes."""
    return sum(file.size for file in files)


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
