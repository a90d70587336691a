"""Source files of a run: list them, identify each by its content, and check that they can be read completely."""

from lakehouse.source_files.arriving import ArrivingFile, list_arriving
from lakehouse.source_files.beginnings import problems_of_beginnings
from lakehouse.source_files.columns import read_column_names
from lakehouse.source_files.early_check import check_columns_in
from lakehouse.source_files.identify import (
    check_unchanged,
    count_files,
    distinct_files,
    find_files,
    have_changed,
    identify_input,
)
from lakehouse.source_files.in_threads import OnProgress
from lakehouse.source_files.inspect import Inspection, inspect_files
from lakehouse.source_files.paths import (
    absolute_path,
    absolute_source,
    base_path,
    is_hidden,
    is_remote,
    may_list,
    may_share,
    part_matches,
    path_matches,
    resolved_pattern,
    source_of_files,
    without_scheme,
)
from lakehouse.source_files.records import find_line, find_non_object, find_repeated_key
from lakehouse.source_files.stated_types import hints_on_stated_types
from lakehouse.source_files.text import stated_encoding
from lakehouse.source_files.type_preview import first_records, preview_types, with_deciding_values
from lakehouse.source_files.writing import arrow_table, check_writable, local_folder, suffix_of, write_rows

__all__ = [
    "ArrivingFile",
    "Inspection",
    "OnProgress",
    "absolute_path",
    "absolute_source",
    "arrow_table",
    "base_path",
    "check_columns_in",
    "check_unchanged",
    "check_writable",
    "count_files",
    "distinct_files",
    "find_files",
    "find_line",
    "find_non_object",
    "find_repeated_key",
    "first_records",
    "have_changed",
    "hints_on_stated_types",
    "identify_input",
    "inspect_files",
    "is_hidden",
    "is_remote",
    "list_arriving",
    "local_folder",
    "may_list",
    "may_share",
    "part_matches",
    "path_matches",
    "preview_types",
    "problems_of_beginnings",
    "read_column_names",
    "resolved_pattern",
    "source_of_files",
    "stated_encoding",
    "suffix_of",
    "with_deciding_values",
    "without_scheme",
    "write_rows",
]
