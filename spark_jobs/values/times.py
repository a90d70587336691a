"""Types of days and times, and the years that other readers of Iceberg than Spark know too."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

MOMENTS = (TimestampType, TimestampNTZType)
TIMES = (DateType, *MOMENTS)
FIRST_YEAR = "0001"
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The first second of the year 1, and the last of the year 9999, in seconds since 1970."""
_FIRST_DAY, _DAY_AFTER_LAST = "0001-01-01", "+10000-01-01"


def is_known_year(value: Column, type: DataType) -> Column:
    """Return a column that is true if a day or time is in the years 1 to 9999."""
    first, end = (F.lit(day).cast(type) for day in (_FIRST_DAY, _DAY_AFTER_LAST))
    return (value >= first) & (value < end)
