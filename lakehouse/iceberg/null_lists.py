"""Keep lists and maps that are NULL when PyIceberg reads them: it returns those with structs as empty.

PyIceberg 0.12 builds a second array, without the NULLs of the first (apache/iceberg-python#3833). A test fails once it
keeps them; this module can be deleted then.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import pyarrow as reader
from pyiceberg.types import ListType, MapType


class NullKeepingVisitor(reader.ArrowProjectionVisitor):
    """Convert the rows of a data file to the schema of their table."""

    def list(self, list_type: ListType, list_array: pa.Array | None, value_array: pa.Array | None) -> pa.Array | None:
        """Return a list column with the type of the table."""
        return _with_nulls(super().list(list_type, list_array, value_array), list_array)

    def map(
        self, map_type: MapType, map_array: pa.Array | None, key_result: pa.Array | None, value_result: pa.Array | None
    ) -> pa.Array | None:
        """Return a map column with the type of the table."""
        return _with_nulls(super().map(map_type, map_array, key_result, value_result), map_array)


def keep_null_lists() -> None:
    """Have PyIceberg read with this visitor: it has no parameter for one."""
    setattr(reader, "ArrowProjectionVisitor", NullKeepingVisitor)  # noqa: B010


def _with_nulls(built: pa.Array | None, read: pa.Array | None) -> pa.Array | None:
    """Return a built list or map array with the NULLs of the array that was read."""
    if built is None or read is None or built.null_count == read.null_count:
        return built
    offsets = pc.add(built.offsets, 0)  # a copy: `from_arrays` refuses a mask with sliced offsets
    # `if_else` would drop the field ids, which are metadata of the nested fields.
    if isinstance(built, pa.MapArray):
        return pa.MapArray.from_arrays(offsets, built.keys, built.items, built.type, mask=read.is_null())
    return type(built).from_arrays(offsets, built.values, built.type, mask=read.is_null())
