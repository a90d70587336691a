"""Refuse Parquet files with VARIANT columns, which Sluice's tables cannot store.

Iceberg has the type from format version 3 on, and PyIceberg cannot read a table with such a column.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.source_files.stored_schema import SPARK_SCHEMA
from sluice.errors import InvalidInput

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

_GROUP = re.compile(r"( *)\w+ group field_id=-?\d+ (.+?)( \(Variant\(\d+\)\))?(?: \(\w+\))? \{")
"""A group in PyArrow's text of a schema, which alone has the logical type of groups."""


def variant_columns(metadata: "FileMetaData") -> tuple[str, ...]:
    """Return the paths of VARIANT columns and fields in a Parquet file, such as `v` or `a.b`."""
    text = str(metadata.schema)
    stated = list(_annotated(text)) if " (Variant(" in text else []
    stored = (metadata.metadata or {}).get(SPARK_SCHEMA, b"")  # Spark 4.0 writes VARIANT columns with no other sign
    of_spark = list(_stored_by_spark(json.loads(stored), "")) if b'"variant"' in stored else []
    return tuple(dict.fromkeys(stated or of_spark))


def check_variants(columns: Mapping[str, Sequence[str]]) -> None:
    """Check that no file has a VARIANT column.

    Args:
        columns: the VARIANT columns by path of the file.

    Raises:
        InvalidInput: a file has one.
    """
    for path, names in columns.items():
        if names:
            raise InvalidInput(
                f"{path}: the column {names[0]} is VARIANT, a type that Sluice's tables cannot store: write it as text "
                f"or as a struct, or convert it by a transform, such as to_json({names[0]})"
            )


def _annotated(text: str) -> Iterator[str]:
    """Return the groups with the logical type VARIANT, from PyArrow's text of a schema."""
    path: list[str] = []
    for line in text.splitlines():
        if group := _GROUP.fullmatch(line):
            indent, name, is_variant = group.groups()
            path[len(indent) // 2 :] = [name]
            if is_variant:
                yield ".".join(path[1:])


def _stored_by_spark(type: Any, path: str) -> Iterator[str]:
    """Return the fields of the type VARIANT at any depth of a type that Spark stored as JSON."""
    if type == "variant":
        yield path
    elif isinstance(type, dict):
        for field in type.get("fields", []):
            yield from _stored_by_spark(field["type"], f"{path}.{field['name']}" if path else field["name"])
        for part in ("elementType", "valueType"):
            yield from _stored_by_spark(type.get(part), path)
