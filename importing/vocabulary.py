"""All expectations by name. Importing the modules registers their draft builders."""

from importing import (
    expectations_of_columns,
    expectations_of_rows,
    expectations_of_suites,
    expectations_of_tables,
    expectations_of_text,
    expectations_of_time,
)
from importing.expectations import EXPECTATIONS
from importing.expectations_of_suites import SUITE_EXPECTATIONS

__all__ = [
    "EXPECTATIONS",
    "SUITE_EXPECTATIONS",
    "expectations_of_columns",
    "expectations_of_rows",
    "expectations_of_suites",
    "expectations_of_tables",
    "expectations_of_text",
    "expectations_of_time",
]
