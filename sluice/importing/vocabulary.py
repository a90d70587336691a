"""All expectations by name: importing the modules registers what they build."""

from sluice.importing import (
    expectations_of_columns,
    expectations_of_tables,
    expectations_of_text,
    expectations_of_time,
)
from sluice.importing.expectations import EXPECTATIONS

__all__ = [
    "EXPECTATIONS",
    "expectations_of_columns",
    "expectations_of_tables",
    "expectations_of_text",
    "expectations_of_time",
]
