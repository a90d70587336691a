"""All expectations by name. Importing the modules registers their draft builders."""

from importing.expectations import columns, rows, suites, tables, texts, times
from importing.expectations.suites import SUITE_EXPECTATIONS
from importing.expectations.values import EXPECTATIONS

__all__ = ["EXPECTATIONS", "SUITE_EXPECTATIONS", "columns", "rows", "suites", "tables", "texts", "times"]
