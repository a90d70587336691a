"""Refuse ORC files whose columns Spark would swap.

Old versions of Hive name the columns of ORC files `_col0`, `_col1` and so on. If the names of all columns of a file
begin with `_col`, Spark reads them by their position in the schema of the read, whatever their names.
"""

from collections.abc import Mapping, Sequence

from lakehouse.source_files.paths import base_path, folder_columns
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source
from sluice.sql.schema_ddl import schema_columns

_WITHOUT_NAMES = "_col"


def check_positions(columns: Mapping[str, Sequence[str]], source: Source) -> None:
    """Check that Spark reads the columns of ORC files by position as it would by name.

    Args:
        columns: the names of the columns of each file, by path.

    Raises:
        InvalidInput: it would read another column.
    """
    read_by_position = [path for path, names in columns.items() if _has_no_names(names)]
    if not read_by_position:
        return
    if source.schema_:
        base, listed = base_path(source), schema_columns(source.schema_)
        for path in read_by_position:
            folders = {name.lower() for name in folder_columns(path, base)}
            stated = [name for name in listed if name.lower() not in folders]
            if not _begins_with(stated, columns[path]):
                raise InvalidInput(
                    f"{_by_position(path)}: list them in source.schema in this order, before those of other files: "
                    f"{', '.join(columns[path])}"
                )
        return
    longest = max(columns, key=lambda path: len(columns[path]))
    for path, names in columns.items():
        if not _begins_with(columns[longest], names):
            other = path if _has_no_names(names) else read_by_position[0]
            raise InvalidInput(
                f"{_by_position(other)}, but {path} has {', '.join(names)}, and {longest} has "
                f"{', '.join(columns[longest])}: load them in runs of their own, or write them with the names of the "
                "columns"
            )


def _has_no_names(names: Sequence[str]) -> bool:
    return bool(names) and all(name.startswith(_WITHOUT_NAMES) for name in names)


def _begins_with(names: Sequence[str], first: Sequence[str]) -> bool:
    return [name.lower() for name in names[: len(first)]] == [name.lower() for name in first]


def _by_position(path: str) -> str:
    return f"{path}: the names of all columns begin with `_col`, so that Spark reads them by their position"
