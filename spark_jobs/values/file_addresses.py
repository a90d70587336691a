"""Name the files of rows."""

from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def address_of_file(rows: DataFrame) -> Column:
    """Return a column with Spark's address of the file of each row.

    The address is empty after a transform that reads its source twice, since Spark then refuses to name files.
    """
    address = F.input_file_name()
    try:
        _ = rows.select(address).schema
    except AnalysisException:
        return F.lit("")
    return address


def path_of_address(address: str) -> str:
    """Return the path of a file for Spark's address of it, which is a URL."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else unquote(address)
