"""Find parts of a condition that may give different answers when it is evaluated again for the same row.

A requeue evaluates its condition twice, to add the rows and to remove them from the quarantine table.
"""

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark

_CHANGING = (
    "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_timezone", "current_user", "input_file_block_length", "input_file_block_start", "input_file_name",
    "localtimestamp", "monotonically_increasing_id", "now", "rand", "randn", "random", "randstr", "session_user",
    "shuffle", "spark_partition_id", "uniform", "unix_timestamp", "user", "uuid", "version",
)  # fmt: skip
"""Spark functions whose result depends on more than their arguments."""
_SAME = (
    "array_contains", "ascii", "bit_length", "btrim", "char_length", "character_length", "contains", "conv",
    "date_format", "endswith", "find_in_set", "format_number", "get_json_object", "hash", "ilike", "instr", "isnan",
    "isnotnull", "isnull", "left", "levenshtein", "like", "locate", "lpad", "ltrim", "luhn_check", "mod", "nanvl",
    "octet_length", "overlay", "pmod", "regexp", "regexp_count", "regexp_extract", "regexp_like", "regexp_replace",
    "replace", "reverse", "right", "rint", "rlike", "rpad", "rtrim", "sentences", "size", "soundex", "split_part",
    "startswith", "substr", "substring", "substring_index", "to_date", "to_number", "to_timestamp", "translate",
    "try_cast", "try_to_number", "try_to_timestamp", "typeof", "xxhash64",
)  # fmt: skip
"""Spark functions that the parser does not know and whose result depends on their arguments alone."""


def determinism_problem(condition: str) -> str | None:
    """Return the reason why a valid condition may give another answer when it is evaluated again, or None."""
    parsed = sqlglot.parse_one(f"SELECT 1 WHERE ({condition}\n)", dialect=Spark)
    if any(query is not parsed for query in parsed.find_all(exp.Query)):
        return "a query may give another result when it runs again: write a condition on the row alone"
    for node in parsed.find_all(exp.Func):
        assert isinstance(node, exp.Func)
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if name in _CHANGING or isinstance(node, exp.Rand | exp.Randn | exp.Uuid | exp.CurrentUser):
            return f"{name}() may give another result when it runs again: write a value instead"
        if isinstance(node, exp.Anonymous) and name not in _SAME:
            return f"Sluice does not know if {name}() gives the same result each time: use another Spark function"
    return None
