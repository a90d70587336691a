"""Load Parquet files whose columns have different types in them, or none in some of them.

Monthly files of one source do: a column without values has no type, and whole numbers with gaps are written as
floating-point numbers. A column takes the type that the table or `source.schema` has, else the widest of the files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.spark_jobs import ColumnGroup
from sluice.identifiers import quoted
from spark_jobs.exact_values import inexact_values, keep_values_exact
from spark_jobs.schemas import STATE_TYPE, merged

Load = Callable[[list[str], StructType | None], DataFrame]
"""Loads some of the files, by a schema or by their own."""
_NESTED = (StructType, ArrayType, MapType)
_ADVICE = "write the files with one type, or load them in runs of their own"


@dataclass(frozen=True)
class GroupedFiles:
    """The files of a source in groups. Columns are matched without regard to capital letters, as Spark does."""

    load: Load
    groups: Sequence[ColumnGroup]
    wanted: StructType | None
    """The schema of the table, or that the pipeline states, if there is one."""
    folders: Mapping[str, DataType]
    """The columns that Spark makes of folders, which have a value whatever the files hold, and their types."""
    check_fields: Callable[[Sequence[StructType]], None] | None = None
    """Where the pipeline states the schema, what refuses files that hold more than it has."""

    def read(self) -> DataFrame:
        """Return the rows of all groups; a value that would be rounded or cut by a common type fails the read.

        Raises:
            InvalidInput: no type holds a column's values.
        """
        stated = self._stated
        names = {field.name.lower(): field.name for field in stated or ()}
        whole = self._frames()
        for name in (name for frame in whole for name in frame.columns):
            names.setdefault(name.lower(), name)
        frames, types = self._typed(whole)
        known = _by_name(self.wanted or ())
        rows = _as_types(frames[0], types)
        for frame in frames[1:]:
            rows = rows.unionByName(_as_types(frame, types), allowMissingColumns=True)
        typed = {name.lower() for name in rows.columns}
        nulls = {name: F.lit(None).cast(known.get(key, NullType())) for key, name in names.items() if key not in typed}
        comments = {field.name: field.metadata for field in stated or ()}
        return rows.withColumns(nulls).select(*(_named(name, comments.get(name)) for name in names.values()))

    def inexact_values(self) -> list[str]:
        """Return the columns with values that the type common to all groups cannot hold exactly, each with a file."""
        frames, types = self._typed(self._frames())
        advice = "state a type that holds all values in source.schema" if self.wanted is None or self._stated else ""
        return [
            problem
            for frame in frames
            for problem in inexact_values(frame, StructType(_common_fields(frame, types)), advice)
        ]

    @property
    def _stated(self) -> StructType | None:
        return self.wanted if self.check_fields is not None else None

    def _frames(self) -> list[DataFrame]:
        return _frames(self.load, self.groups, self._stated, self.folders, self.check_fields)

    def _typed(self, whole: Sequence[DataFrame]) -> tuple[list[DataFrame], dict[str, DataType]]:
        """Return the rows without the columns that have no type in a group, and the types that are cast to."""
        frames = [frame.drop(*_untyped(group, self.folders)) for frame, group in zip(whole, self.groups, strict=True)]
        return frames, _common_types(frames, _by_name(self.wanted or ()), is_stated=self._stated is not None)


def _frames(
    load: Load,
    groups: Sequence[ColumnGroup],
    stated: StructType | None,
    folders: Mapping[str, DataType],
    check_fields: Callable[[Sequence[StructType]], None] | None,
) -> list[DataFrame]:
    """Return the rows of each group with the numbers of its files.

    All else is read by one type for all groups: Spark's reader matches the fields of a struct by name, a cast by their
    order.
    """
    frames = [load(group.files, None) for group in groups]
    untyped = [_untyped(group, folders) for group in groups]
    typed = [
        StructType([field for field in frame.schema if field.name.lower() not in without])
        for frame, without in zip(frames, untyped, strict=True)
    ]
    if check_fields is not None:
        check_fields(typed)
    known = _by_name(stated or ())
    others = _nested_types(typed, known) | {name.lower(): type for name, type in folders.items()}
    for number, (group, frame, without) in enumerate(zip(groups, frames, untyped, strict=True)):
        fields = [field if field.name.lower() in without else _read_as(field, known, others) for field in frame.schema]
        if any(field.dataType != own.dataType for field, own in zip(fields, frame.schema, strict=True)):
            frames[number] = load(group.files, StructType(fields))
    return frames


def _untyped(group: ColumnGroup, folders: Mapping[str, DataType]) -> set[str]:
    """Return the columns that hold nothing but NULL in a group, in small letters."""
    return {name.lower() for name in group.untyped} - {name.lower() for name in folders}


def _read_as(field: StructField, stated: Mapping[str, DataType], others: Mapping[str, DataType]) -> StructField:
    """Return a column of files with the type by which Spark's reader is to read it."""
    name, own = field.name.lower(), field.dataType
    type = others.get(name) or stated.get(name, own)
    is_cast = name not in others and isinstance(own, NumericType) and isinstance(type, NumericType)
    return StructField(field.name, own if is_cast else type)


def _nested_types(schemas: Sequence[StructType], stated: Mapping[str, DataType]) -> dict[str, DataType]:
    """Return the type of each column of structs, lists or maps that holds every row of all groups."""
    types: dict[str, DataType] = {}
    for field in (field for schema in schemas for field in schema if isinstance(field.dataType, _NESTED)):
        name = field.name.lower()
        have = types.get(name, field.dataType)
        types[name] = merged(have, field.dataType, field.name, widens=False, advice=_ADVICE)
    return {**types, **{name: stated[name] for name in types.keys() & stated.keys()}}


def _common_types(
    frames: Sequence[DataFrame], wanted: Mapping[str, DataType], *, is_stated: bool
) -> dict[str, DataType]:
    """Return the type of each column that is to be cast to it in some group, by its name in small letters."""
    types: dict[str, list[DataType]] = {}
    for field in (field for frame in frames for field in frame.schema):
        have = types.setdefault(field.name.lower(), [])
        have += [] if field.dataType in have else [field.dataType]
    if is_stated:
        return {name: wanted[name] for name, have in types.items() if have != [wanted.get(name)] and name in wanted}
    return {name: _common_type(name, have, wanted.get(name)) for name, have in types.items() if len(have) > 1}


def _common_type(name: str, types: Sequence[DataType], wanted: DataType | None) -> DataType:
    are_numbers = all(isinstance(type, NumericType) for type in types)
    # As text, a number is written by its own type: 5 as 5, and not as 5.0 because another file has fractions.
    if are_numbers and isinstance(wanted, NumericType | StringType):
        return wanted
    common = types[0]
    for type in types[1:]:
        common = merged(common, type, name, advice=STATE_TYPE if are_numbers else _ADVICE)
    return common


def _common_fields(rows: DataFrame, types: Mapping[str, DataType]) -> list[StructField]:
    return [StructField(name, types[name.lower()]) for name in rows.columns if name.lower() in types]


def _as_types(rows: DataFrame, types: Mapping[str, DataType]) -> DataFrame:
    common = _common_fields(rows, types)
    if not common:
        return rows
    exact = keep_values_exact(rows, StructType(common))
    return exact.withColumns({field.name: F.col(quoted(field.name)).cast(field.dataType) for field in common})


def _by_name(fields: Iterable[StructField]) -> dict[str, DataType]:
    return {field.name.lower(): field.dataType for field in fields}


def _named(name: str, metadata: Mapping[str, object] | None) -> Column:
    column = F.col(quoted(name))
    return column.alias(name, metadata=dict(metadata)) if metadata else column.alias(name)
