"""Find Parquet and ORC files without columns or nested fields that other files of the same run have."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING

from sluice.contracts.spark_jobs import MissingFields

if TYPE_CHECKING:
    from pyarrow import DataType, Field, Schema

Structs = tuple[tuple[str, tuple[str, ...]], ...]
"""The row of a file and each struct in it: its path in the form `a.b` or `list[]`, and its fields. The path of the row
is empty."""


def structs_of(schema: "Schema") -> Structs:
    """Return the structs of a file, at any depth of structs, lists and values of maps."""
    return _shared(tuple(_structs("", schema)))


@lru_cache(maxsize=32)
def _shared(structs: Structs) -> Structs:
    """Return the structs: one tuple for all files with the same columns, which may be 100,000 files."""
    return structs


def _structs(path: str, fields: "Iterable[Field]") -> Iterator[tuple[str, tuple[str, ...]]]:
    inner = [(intern(each.name), each.type) for each in fields]
    yield path, tuple(name for name, _ in inner)
    for name, type in inner:
        if type.num_fields:
            yield from _structs_within(f"{path}.{name}" if path else name, type)


def _structs_within(path: str, type: "DataType") -> Iterator[tuple[str, tuple[str, ...]]]:
    from pyarrow import types  # noqa: PLC0415  # slow to import

    if types.is_struct(type):
        yield from _structs(path, [type.field(number) for number in range(type.num_fields)])
    elif types.is_map(type):
        yield from _structs_within(f"{path}[]", type.item_type)
    elif types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        yield from _structs_within(f"{path}[]", type.value_type)


def missing_fields(files: Mapping[str, Structs]) -> list[MissingFields]:
    """Return the fields that some files have and others lack, for the first file of those with the same fields.

    A struct that a file lacks as a whole counts as one field. As in Spark, names are compared regardless of case.
    """
    first: dict[Structs, str] = {}
    for file, structs in files.items():
        first.setdefault(structs, file)
    every: dict[str, dict[str, str]] = {}
    for structs in first:
        for path, names in structs:
            known = every.setdefault(path.lower(), {})
            for name in names:
                known.setdefault(name.lower(), name)
    missing = ((file, _missing(structs, every)) for structs, file in first.items())
    return [MissingFields(file=file, fields=fields) for file, fields in missing if fields]


def _missing(structs: Structs, every: Mapping[str, Mapping[str, str]]) -> list[str]:
    missing = []
    for path, names in structs:
        own = {name.lower() for name in names}
        lacking = (name for lower, name in every[path.lower()].items() if lower not in own)
        missing += [f"{path}.{name}" if path else name for name in lacking]
    return missing
