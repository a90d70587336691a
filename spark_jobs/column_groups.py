"""Load Parquet files whose columns have different types in them, or none in some of them.

Monthly files of one source do: a column without values has no type, and whole numbers with gaps are written as
floating-point numbers. A column takes the type that the table or `source.schema` has, else the widest of the files.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NullType, NumericType, StructField, StructType

from sluice.contracts.spark_jobs import ColumnGroup
from sluice.identifiers import quoted
from spark_jobs.exact_values import inexact_values, keep_values_exact
from spark_jobs.schemas import merged


def load_column_groups(
    load: Callable[[list[str]], DataFrame],
    groups: Sequence[ColumnGroup],
    wanted: StructType | None,
    folders: Collection[str] = (),
) -> DataFrame:
    """Return the rows of all groups; a value that would be rounded or cut by a common type fails the read.

    Columns are matched without regard to capital letters, as Spark does.

    Args:
        load: loads some of the files.
        wanted: the schema of the table, or that the pipeline states, if there is one.
        folders: the columns that Spark makes of folders, which have a value whatever the files hold.

    Raises:
        InvalidInput: no type holds a column's values.
    """
    known = {field.name.lower(): field.dataType for field in wanted or ()}
    names: dict[str, str] = {}
    frames = []
    for group in groups:
        frame = load(group.files)
        for name in frame.columns:
            names.setdefault(name.lower(), name)
        frames.append(_typed(frame, group, folders))
    types = _common_types(frames, known)
    rows = _as_types(frames[0], types)
    for frame in frames[1:]:
        rows = rows.unionByName(_as_types(frame, types), allowMissingColumns=True)
    typed = {name.lower() for name in rows.columns}
    nulls = {name: F.lit(None).cast(known.get(key, NullType())) for key, name in names.items() if key not in typed}
    return rows.withColumns(nulls).select(*(F.col(quoted(name)).alias(name) for name in names.values()))


def inexact_values_of_groups(
    load: Callable[[list[str]], DataFrame],
    groups: Sequence[ColumnGroup],
    wanted: StructType | None,
    folders: Collection[str] = (),
) -> list[str]:
    """Return the columns with values that the type common to all groups cannot hold exactly, each with a file.

    The arguments are those of `load_column_groups`.
    """
    frames = [_typed(load(group.files), group, folders) for group in groups]
    types = _common_types(frames, {field.name.lower(): field.dataType for field in wanted or ()})
    advice = "state a type that holds all values in source.schema" if wanted is None else ""
    return [
        problem
        for frame in frames
        for problem in inexact_values(frame, StructType(_common_fields(frame, types)), advice)
    ]


def _typed(rows: DataFrame, group: ColumnGroup, folders: Collection[str]) -> DataFrame:
    """Return the rows of a group without the columns that have no type in its files."""
    of_folders = {name.lower() for name in folders}
    return rows.drop(*(name for name in group.untyped if name.lower() not in of_folders))


def _common_types(frames: Sequence[DataFrame], wanted: Mapping[str, DataType]) -> dict[str, DataType]:
    """Return the type of each column that has different ones, by its name in small letters."""
    types: dict[str, list[DataType]] = {}
    for frame in frames:
        for field in frame.schema:
            have = types.setdefault(field.name.lower(), [])
            have += [] if field.dataType in have else [field.dataType]
    return {name: _common_type(name, have, wanted.get(name)) for name, have in types.items() if len(have) > 1}


def _common_type(name: str, types: Sequence[DataType], wanted: DataType | None) -> DataType:
    if wanted is not None and all(isinstance(type, NumericType) for type in (*types, wanted)):
        return wanted
    common = types[0]
    for type in types[1:]:
        common = merged(common, type, name)
    return common


def _common_fields(rows: DataFrame, types: Mapping[str, DataType]) -> list[StructField]:
    return [StructField(name, types[name.lower()]) for name in rows.columns if name.lower() in types]


def _as_types(rows: DataFrame, types: Mapping[str, DataType]) -> DataFrame:
    common = _common_fields(rows, types)
    if not common:
        return rows
    exact = keep_values_exact(rows, StructType(common))
    return exact.withColumns({field.name: F.col(quoted(field.name)).cast(field.dataType) for field in common})
