"""Refuse a stated schema with a column that no Parquet or ORC file has: Spark would read NULL in each row."""

from collections.abc import Mapping, Sequence

from lakehouse.source_files.paths import base_path, partition_of
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion
from sluice.pipeline.source import Source
from sluice.sql.schema_ddl import schema_columns

_NAMED = 10
"""Maximum number of columns of the files that the refusal names."""


def check_stated_columns(columns: Mapping[str, Sequence[str]], source: Source) -> None:
    """Check that each column of the stated schema is in at least one file, or in its folders.

    Args:
        columns: the names of the columns of each file, by path.

    Raises:
        InvalidInput: no file has a column.
    """
    if not source.schema_ or not columns:
        return
    base = base_path(source)
    folders = {part.partition("=")[0].lower() for path in columns for part in partition_of(path, base).split("/")}
    names = list(dict.fromkeys(name for of_file in columns.values() for name in of_file))
    known = {*folders, *(name.lower() for name in names)}
    for stated in schema_columns(source.schema_):
        if stated.lower() not in known:
            listed = ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
            raise InvalidInput(
                f"no file has the column {stated!r} of source.schema{suggestion(stated, names)}, but {listed}: correct "
                "its name, or leave it out of the schema"
            )
