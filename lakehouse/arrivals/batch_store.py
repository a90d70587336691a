"""Store of batches: the files of each, as JSON in the lake, so that only a batch's name goes through Temporal."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.io import FileIO, load_file_io

from lakehouse.iceberg.store_errors import explain_store_error
from sluice.contracts.arrivals import Age, ArrivedFile, BatchRef
from sluice.errors import ManifestUnreadable, ServiceUnavailable

_FOLDER = "sluice-arrivals"
_ID_DIGITS = 12


@dataclass(frozen=True)
class BatchStore:
    """Reader and writer of batches.

    Requires the lake's location, and Iceberg's properties for file access.
    """

    lake: str
    io: Mapping[str, str]
    _file_io: list[FileIO] = field(default_factory=list, repr=False)

    def write(self, pipeline: str, files: Sequence[ArrivedFile], ages: Sequence[Age] = ()) -> BatchRef:
        """Write a batch under a name derived from its files, so that the same files always make the same batch.

        Args:
            pipeline: the name of the pipeline.
            files: the files of the batch.
            ages: the age of each file, if they are known; otherwise those in the files count.
        """
        if ages:
            files = [file.model_copy(update={"age": age}) for file, age in zip(files, ages, strict=True)]
        ages = [file.age for file in files if file.age]
        content = json.dumps([file.model_dump(mode="json") for file in files]).encode()
        id = _digest(file.identity for file in files)
        location = f"{self.lake.rstrip('/')}/{_FOLDER}/{pipeline}/{id}.json"
        with self._io.new_output(location).create(overwrite=True) as file:
            file.write(content)
        size, paths = sum(each.size for each in files), _digest(file.path for file in files)
        return BatchRef(
            id=id,
            location=location,
            files=len(files),
            bytes=size,
            paths=paths,
            oldest=min(ages, default=()),
            newest=max(ages, default=()),
            is_sent_again=any(file.is_sent_again for file in files),
        )

    def read(self, ref: BatchRef) -> list[ArrivedFile]:
        """Read the files of a batch, as `read_from` does."""
        return self.read_from(ref.location)

    def read_from(self, location: str) -> list[ArrivedFile]:
        """Read the files of the batch at a location.

        Raises:
            ManifestUnreadable: it is missing, or differs from what was written.
            ServiceUnavailable: its store does not answer.
        """
        try:
            with self._io.new_input(location).open() as file:
                return [ArrivedFile.model_validate(each) for each in json.loads(file.read())]
        except FileNotFoundError as error:
            raise ManifestUnreadable(f"the batch {location} is missing: restore it from a backup") from error
        except ValueError as error:
            raise ManifestUnreadable(f"the batch {location} was altered: restore it from a backup") from error
        except OSError as error:
            plain = ServiceUnavailable(f"the batch {location} cannot be read now: {error}")
            raise explain_store_error(error) or plain from error

    @property
    def _io(self) -> FileIO:
        if not self._file_io:
            self._file_io.append(load_file_io(dict(self.io), self.lake))
        return self._file_io[0]


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:_ID_DIGITS]
