"""Load Parquet files in which the type of a column differs from file to file, or is missing in some files.

Monthly files of one source are like this: a column without values has no type, and whole numbers with gaps are stored
as floating-point numbers. A column gets its type from the table or `source.schema`, else the widest type of the files.
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
    TimestampNTZType,
    TimestampType,
)

from sluice.contracts.spark_jobs import ColumnGroup
from sluice.identifiers import quoted
from spark_jobs.values.exact_values import inexact_values, keep_values_exact
from spark_jobs.values.many_columns import with_columns
from spark_jobs.values.schemas import STATE_TYPE, merged
from spark_jobs.values.type_rules import are_of_one_kind

Load = Callable[[list[str], StructType | None], DataFrame]
"""A function that loads some of the files, with a schema or with their own."""
_NESTED = (StructType, ArrayType, MapType)
_ADVICE = "write the files with one type, or load them in runs of their own"


@dataclass(frozen=True)
class GroupedFiles:
    """The files of a source in groups, whose columns are matched regardless of case, as in Spark."""

    load: Load
    groups: Sequence[ColumnGroup]
    wanted: StructType | None
    """The schema that the pipeline states, or the schema of the table; None if there is neither."""
    folders: Mapping[str, DataType]
    """Types of the columns that Spark makes from folders. They have a value in every file."""
    check_stated: Callable[[Sequence[StructType]], None] | None = None
    """A function that refuses files with other fields or types than the stated schema; None if there is no such schema.
    """

    def read(self) -> DataFrame:
        """Return the rows of all groups. A value that a common type would round or cut fails the read.

        Raises:
            InvalidInput: no type can represent all values of a column.
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
        columns = (_named(name, comments.get(name)) for name in names.values())
        return with_columns(rows, nulls).select(*columns)

    def inexact_values(self) -> list[str]:
        """Return the columns with values that the groups' common type cannot represent exactly, each with a file."""
        frames, types = self._typed(self._frames())
        advice = "state a type that fits all values in source.schema" if self.wanted is None or self._stated else ""
        return [
            problem
            for frame in frames
            for problem in inexact_values(frame, StructType(_common_fields(frame, types)), advice)
        ]

    @property
    def _stated(self) -> StructType | None:
        return self.wanted if self.check_stated is not None else None

    def _frames(self) -> list[DataFrame]:
        return _frames(self.load, self.groups, self._stated, self.folders, self.check_stated)

    def _typed(self, whole: Sequence[DataFrame]) -> tuple[list[DataFrame], dict[str, DataType]]:
        """Return the rows of each group without its untyped columns, and the target types of the casts."""
        frames = [frame.drop(*_untyped(group, self.folders)) for frame, group in zip(whole, self.groups, strict=True)]
        return frames, _common_types(frames, _by_name(self.wanted or ()), is_stated=self._stated is not None)


def _frames(
    load: Load,
    groups: Sequence[ColumnGroup],
    stated: StructType | None,
    folders: Mapping[str, DataType],
    check_stated: Callable[[Sequence[StructType]], None] | None,
) -> list[DataFrame]:
    """Return the rows of each group, with numbers and times in the types of the group's files.

    Other columns are read with one type for all groups, without a later cast. Spark's reader matches the fields of a
    struct by name, but a cast matches them by position.
    """
    frames = [load(group.files, None) for group in groups]
    untyped = [_untyped(group, folders) for group in groups]
    typed = [
        StructType([field for field in frame.schema if field.name.lower() not in without])
        for frame, without in zip(frames, untyped, strict=True)
    ]
    if check_stated is not None:
        check_stated(typed)
    known = _by_name(stated or ())
    others = _nested_types(typed, known) | {name.lower(): type for name, type in folders.items()}
    for number, (group, frame, without) in enumerate(zip(groups, frames, untyped, strict=True)):
        fields = [field if field.name.lower() in without else _read_as(field, known, others) for field in frame.schema]
        if any(field.dataType != own.dataType for field, own in zip(fields, frame.schema, strict=True)):
            frames[number] = load(group.files, StructType(fields))
    return frames


def _untyped(group: ColumnGroup, folders: Mapping[str, DataType]) -> set[str]:
    """Return the columns that contain only NULL in a group, in lower case."""
    return {name.lower() for name in group.untyped} - {name.lower() for name in folders}


def _read_as(field: StructField, stated: Mapping[str, DataType], others: Mapping[str, DataType]) -> StructField:
    """Return a column of files with the type that Spark's reader is given for it."""
    name, own = field.name.lower(), field.dataType
    type = others.get(name) or stated.get(name, own)
    is_moment = isinstance(own, TimestampNTZType) and isinstance(type, TimestampType)  # read at once: casts are slow
    is_cast = name not in others and are_of_one_kind(own, type) and not is_moment
    return StructField(field.name, own if is_cast else type)


def _nested_types(schemas: Sequence[StructType], stated: Mapping[str, DataType]) -> dict[str, DataType]:
    """Return a type for each column of structs, lists or maps that can represent the rows of all groups."""
    types: dict[str, DataType] = {}
    for field in (field for schema in schemas for field in schema if isinstance(field.dataType, _NESTED)):
        name = field.name.lower()
        have = types.get(name, field.dataType)
        types[name] = merged(have, field.dataType, field.name, widens=False, advice=_ADVICE)
    return {**types, **{name: stated[name] for name in types.keys() & stated.keys()}}


def _common_types(
    frames: Sequence[DataFrame], wanted: Mapping[str, DataType], *, is_stated: bool
) -> dict[str, DataType]:
    """Return the target type of each column that some group must cast, by the column's name in lower case."""
    types: dict[str, list[DataType]] = {}
    for field in (field for frame in frames for field in frame.schema):
        have = types.setdefault(field.name.lower(), [])
        have += [] if field.dataType in have else [field.dataType]
    if is_stated:
        return {name: wanted[name] for name, have in types.items() if have != [wanted.get(name)] and name in wanted}
    return {name: _common_type(name, have, wanted.get(name)) for name, have in types.items() if len(have) > 1}


def _common_type(name: str, types: Sequence[DataType], wanted: DataType | None) -> DataType:
    are_numbers = all(isinstance(type, NumericType) for type in types)
    # A number that becomes text keeps the notation of its own type: 5 does not become 5.0 because another file has
    # fractions.
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
    return with_columns(exact, {field.name: F.col(quoted(field.name)).cast(field.dataType) for field in common})


def _by_name(fields: Iterable[StructField]) -> dict[str, DataType]:
    return {field.name.lower(): field.dataType for field in fields}


def _named(name: str, metadata: Mapping[str, object] | None) -> Column:
    column = F.col(quoted(name))
    return column.alias(name, metadata=dict(metadata)) if metadata else column.alias(name)
