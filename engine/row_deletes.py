"""Positions of deleted rows, read from Iceberg's delete files.

Delete files are position deletes in Parquet, and deletion vectors in Puffin.
A delete file whose content contradicts the table's metadata is an error: DuckDB gives no answer, and Spark answers.
"""

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyiceberg.io import load_file_io
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from sluice.metadata.statistics import DeleteFile

_Positions = dict[str, pa.ChunkedArray]
"""The positions of deleted rows, by the path of their data file."""
_SCHEMA = pa.schema([("file", pa.string()), ("position", pa.int64())])


def deleted_rows(
    io: Mapping[str, str], deletes: Mapping[str, Sequence[DeleteFile]], names: Mapping[str, str]
) -> pa.Table:
    """Return the deleted rows of data files: the name of the file and the row's position in it, without duplicates.

    Args:
        deletes: the delete files that apply to each data file, by its path. One that names another data file is
            an error.
        names: the name of each data file in the answer, by its path.

    Raises:
        duckdb.InvalidInputException: a delete file contradicts the table's metadata.
        OSError: a delete file cannot be read.
    """
    read = {each.path: _read(io, each) for each in {each for files in deletes.values() for each in files}}
    applied = {path: {each.path for each in files} for path, files in deletes.items()}
    parts = []
    for delete_path, positions in read.items():
        for path in positions.keys() & deletes.keys():
            if delete_path not in applied[path]:
                raise duckdb.InvalidInputException(f"{delete_path} names {path}, to which it does not apply")
            of_file = positions[path]
            parts.append(pa.table([pa.array([names[path]] * len(of_file)), of_file.cast(pa.int64())], schema=_SCHEMA))
    rows = pa.concat_tables(parts) if parts else _SCHEMA.empty_table()
    return rows.group_by(["file", "position"]).aggregate([])


def _read(io: Mapping[str, str], file: DeleteFile) -> _Positions:
    with load_file_io(dict(io), file.path).new_input(file.path).open() as opened:
        content = opened.read()
    try:
        positions = _vectors(content, file) if file.form == "PUFFIN" else _position_deletes(content)
    except (pa.ArrowException, ValueError, KeyError, IndexError) as error:
        raise duckdb.InvalidInputException(f"{file.path} cannot be read: {error}") from error
    rows = sum(len(positions) for positions in positions.values())
    if rows != file.rows:
        raise duckdb.InvalidInputException(f"{file.path} has {rows:,} deletes, and its metadata {file.rows:,}")
    return positions


def _vectors(content: bytes, file: DeleteFile) -> _Positions:
    """Return the vectors of a Puffin file. All must be live, since PyIceberg does not tell which of them are not."""
    vectors = deletion_vectors_from_puffin_file(PuffinFile(content))
    by_file = {each.referenced_data_file: each.to_vector() for each in vectors}
    if not len(vectors) == len(by_file) == file.vectors:
        raise ValueError(f"{len(vectors)} deletion vectors, of which {file.vectors} are live")
    return by_file


def _position_deletes(content: bytes) -> _Positions:
    table = parquet.read_table(pa.BufferReader(content), columns=["file_path", "pos"])
    paths = table.column("file_path")
    return {
        path: table.column("pos").filter(pc.equal(paths, path)).combine_chunks()
        for path in pc.unique(paths).to_pylist()
    }
