"""Verify that the files of a table's earlier version still exist."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from lakehouse.catalog import TableDiff, TableVersion
from lakehouse.iceberg.table_state import TableState, load_table

_THREADS = 16


def missing_files(diff: TableDiff, io: Mapping[str, str]) -> list[str]:
    """Return the missing files of a restored version: manifests, data files and delete files.

    Files that the version on main lists too are assumed to exist.
    """
    if diff.after is None:
        return []
    on_main = set(_files(diff.before, io)) if diff.before else set[str]()
    try:
        listed = sorted(set(_files(diff.after, io)) - on_main)
    except FileNotFoundError as error:
        return [str(error)]
    file_io = load_table(diff.after, io).io
    with ThreadPoolExecutor(_THREADS) as pool:
        exist = pool.map(lambda path: file_io.new_input(path).exists(), listed)
        return [path for path, there in zip(listed, exist, strict=True) if not there]


def _files(version: TableVersion, io: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of all files that a version of a table lists."""
    table = TableState.load(version, None, io)
    for manifest in table.manifests:
        yield manifest.manifest_path
        for entry in manifest.fetch_manifest_entry(table.table.io, discard_deleted=True):
            yield entry.data_file.file_path
