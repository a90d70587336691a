"""Store of input manifests: JSON lines next to the lake's reports, named by their content."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyiceberg.io import FileIO, load_file_io

from lakehouse.iceberg.store_errors import explain_store_error
from sluice.contracts.selected_input import ManifestRef
from sluice.errors import ManifestUnreadable, ServiceUnavailable
from sluice.input.manifest import InputManifest, manifest_digest, read_manifest

_FOLDER = "sluice-inputs"
"""Folder of manifests. Reports, in another folder, may be removed; manifests record which files were loaded."""
_NAME_DIGITS = 16


@dataclass(frozen=True)
class InputManifests:
    """Reader and writer of manifests.

    Requires the lake's location, and Iceberg's properties for file access.
    """

    lake: str
    io: Mapping[str, str]
    _file_io: list[FileIO] = field(default_factory=list, repr=False)

    def write(self, manifest: InputManifest) -> ManifestRef:
        """Write a manifest under a name derived from its content, so that a late writer replaces no other manifest."""
        content, header = manifest.to_bytes(), manifest.header
        digest = manifest_digest(content)
        folder = f"{self.lake.rstrip('/')}/{_FOLDER}/{header.pipeline}/{header.run_id}"
        location = f"{folder}/a{header.attempt}-{digest[:_NAME_DIGITS]}.jsonl"
        with self._io.new_output(location).create(overwrite=True) as file:
            file.write(content)
        return ManifestRef(location=location, digest=digest)

    def read(self, ref: ManifestRef) -> InputManifest:
        """Read a manifest.

        Raises:
            ManifestUnreadable: it is missing, or differs from what was written.
            ServiceUnavailable: its store does not answer, or cannot be reached from here.
        """
        try:
            with self._io.new_input(ref.location).open() as file:
                content = file.read()
        except FileNotFoundError as error:
            raise ManifestUnreadable(
                f"the input manifest {ref.location} is missing: restore it from a backup"
            ) from error
        except OSError as error:
            plain = ServiceUnavailable(f"the input manifest {ref.location} cannot be read now: {error}")
            raise explain_store_error(error) or plain from error
        return read_manifest(content, ref.location, ref.digest)

    @property
    def _io(self) -> FileIO:
        if not self._file_io:
            self._file_io.append(load_file_io(dict(self.io), self.lake))
        return self._file_io[0]
