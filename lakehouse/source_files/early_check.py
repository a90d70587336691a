"""Refuse the columns of Parquet and ORC files at the start of a run, before a worker reads the files."""

from collections.abc import Sequence

from lakehouse.source_files.identify import describe
from lakehouse.source_files.orc_footer import check_orc_columns, open_orc
from lakehouse.source_files.parquet_footer import check_columns, open_footer
from lakehouse.source_files.paths import is_remote
from lakehouse.source_files.variants import check_variants, variant_columns
from sluice.contracts.run_request import InputFile
from sluice.errors import InvalidInput
from sluice.pipeline.source import Format

_FILES = 64
"""Maximum number of files to read at the start of a run. The worker reads all files before Spark does."""


def check_columns_in(files: Sequence[InputFile], format: Format, *, is_transformed: bool) -> None:
    """Check that Spark reads the columns of the first Parquet or ORC files on this machine.

    Args:
        is_transformed: True if a transform may convert columns of a type that Spark reads and no table can store.

    Raises:
        InvalidInput: a file has a column that Spark does not read, or that no table can store.
    """
    for file in files[:_FILES]:
        if is_remote(file.path):
            continue
        if format == "parquet":
            _check_parquet(file.path, is_transformed=is_transformed)
        elif format == "orc":
            _check_orc(file.path)


def _check_parquet(path: str, *, is_transformed: bool) -> None:
    try:
        footer = open_footer(describe(path))
    except InvalidInput:  # the error is reported when the file is identified
        return
    check_columns(footer)
    if not is_transformed:
        check_variants({path: variant_columns(footer.metadata)})


def _check_orc(path: str) -> None:
    try:
        schema = open_orc(describe(path)).schema
    except InvalidInput:  # the error is reported when the file is read
        return
    check_orc_columns(path, schema)
