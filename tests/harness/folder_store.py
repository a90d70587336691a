"""A folder that the code for S3 reads as an object store, with errors on request."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from unittest import mock

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from engine.duckdb_session import DuckDBSession, ParquetView
from engine.row_deletes import deleted_rows
from sluice.contracts.spark_jobs import ScanAnswer

_BUCKET = "s3://folder"
IO = {"py-io-impl": "tests.harness.folder_store.FolderIO"}


class FolderIO(PyArrowFileIO):
    """A file IO that reads local files under addresses of a store."""

    errors: ClassVar[list[OSError]] = []
    """Errors that the next requests to open a file raise."""

    def new_input(self, location: str) -> PyArrowFile:
        """Return the local file."""
        if self.errors:
            raise self.errors.pop(0)
        return super().new_input(location.removeprefix(_BUCKET))


def in_store(path: str) -> str:
    """Return the address of a local file in the store."""
    return _BUCKET + path.removeprefix("file://").removeprefix("file:")


class FolderStoreSession(DuckDBSession):
    """A session that reads local data files as if they were in a store."""

    def answer(
        self,
        views: Sequence[ParquetView],
        *arguments: Any,
        disjoint_views: Mapping[str, Sequence[ParquetView]] | None = None,
        **options: Any,
    ) -> dict[str, ScanAnswer]:
        """Answer check queries, as the session does."""
        split = {key: _moved(each) for key, each in (disjoint_views or {}).items()}
        recorded = {in_store(path): path for view in views for path in view.deletes}

        def read_deletes(io: Any, deletes: Mapping[str, Any], names: Mapping[str, str]) -> Any:
            """Read delete files, which name the data files by their paths in the folder."""
            by_path = {recorded[path]: files for path, files in deletes.items()}
            return deleted_rows(io, by_path, {recorded[path]: name for path, name in names.items()})

        with mock.patch("engine.duckdb_session.deleted_rows", read_deletes):
            return super().answer(_moved(views), *arguments, disjoint_views=split, **options)


def _moved(views: Sequence[ParquetView]) -> list[ParquetView]:
    return [
        replace(
            view,
            paths=[in_store(path) for path in view.paths],
            deletes={in_store(path): files for path, files in view.deletes.items()},
        )
        for view in views
    ]
