"""The schema that Spark stores in a Parquet file, which it reads instead of the schema of the file itself."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from sluice.errors import InvalidInput
from sluice.sizes import format_list

if TYPE_CHECKING:
    from pyarrow import Schema

SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Key of the schema that Spark stores. Other libraries copy it when they add, rename or leave out columns."""


def check_stored_schema(path: str, schema: "Schema", stored: bytes) -> None:
    """Check that a Parquet file has the columns that Spark's schema in it states.

    Args:
        path: path of the file.
        schema: the schema of the file itself.
        stored: the schema that Spark stored, as JSON; empty if there is none.

    Raises:
        InvalidInput: the columns differ. Spark would leave out a column, or read NULL.
    """
    if not stored:
        return
    if differing := sorted(_columns(stored) ^ {*schema.names}):
        raise InvalidInput(
            f"{path}: its metadata states the columns that Spark wrote, and other columns were written since: "
            f"{format_list(differing, 3)} would be lost or NULL. Write the file without that metadata "
            "(PyArrow: table.replace_schema_metadata())"
        )


@lru_cache(maxsize=32)
def _columns(stored: bytes) -> frozenset[str]:
    """Return the names of the columns in a stored schema, once for all files with the same one."""
    return frozenset(field["name"] for field in json.loads(stored)["fields"])
