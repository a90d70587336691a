"""Validate and quote names that come from outside: the only place that does so.

Names of tables, namespaces, branches and pipelines become keys, paths and references, so only plain names are allowed.
Column names come with the data, so all of them are allowed, and they are quoted.
"""

import difflib
import math
import re
from collections.abc import Iterable

from sluice.errors import InvalidPipeline

_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
REHEARSAL_SUFFIX = "-rehearsal"
"""End of the name of the copy of a pipeline that `rehearse` runs."""
_PIPELINE = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?")
LONGEST_KEY = 100
"""Maximum length of the key of a start, in characters. A workflow id has at most 255 in some databases of Temporal."""
_START_KEY = re.compile(rf"[A-Za-z0-9_.:+-]{{1,{LONGEST_KEY}}}")
_ELEMENT = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
ATTEMPTS = "wap/"
"""Prefix of the names of attempts' branches. No other branch has it."""
_BACKFILLS = "sluice/backfill/"
"""Prefix of the names of branches on which backfills collect their partitions."""
_ATTEMPT = re.compile(r"wap/.+/([0-9a-f-]{36})/a(\d{1,9})")
_BRANCH = re.compile(r"[A-Za-z](?:[A-Za-z0-9_/-]|\.(?!\.)){0,98}[A-Za-z0-9]|[A-Za-z]")


def table_name(name: str) -> str:
    """Return `name` if it is a valid table name: a namespace and a table, as in `nyc.flights`.

    Raises:
        InvalidPipeline: the name is not valid.
    """
    parts = name.split(".")
    if len(parts) < 2 or not all(_PART.fullmatch(part) for part in parts):
        raise InvalidPipeline(
            f"{name!r} is not a table name: write namespace.table, "
            "each of letters, digits and underscores, not beginning with a digit"
        )
    return name


def pipeline_name(name: str) -> str:
    """Return `name` if it is a valid pipeline name.

    Raises:
        InvalidPipeline: the name is not valid.
    """
    if not _PIPELINE.fullmatch(name):
        raise InvalidPipeline(
            f"{name!r} is not a pipeline name: use letters, digits, '-' and '_', "
            "beginning with a letter, at most 100 characters"
        )
    return name


def start_key(key: str) -> str:
    """Return `key` if a program may name a start by it.

    Raises:
        InvalidPipeline: the key is not valid.
    """
    if not _START_KEY.fullmatch(key):
        raise InvalidPipeline(
            f"{key[:LONGEST_KEY]!r} is not a key of a start: use letters, digits, '_', '.', ':', '+' and '-', "
            f"at most {LONGEST_KEY} characters"
        )
    return key


def branch_name(name: str) -> str:
    """Return `name` if runs can name their branches after it.

    Raises:
        InvalidPipeline: the name is not valid.
    """
    if not _BRANCH.fullmatch(name) or "//" in name:
        raise InvalidPipeline(
            f"{name!r} is not a branch name: use letters, digits, '-', '_', '/' and single dots, "
            "beginning with a letter, at most 100 characters"
        )
    return name


def attempt_branch(label: str, run_id: str, attempt: int) -> str:
    """Name the branch of one attempt. No other attempt of any run ever gets the same name."""
    return f"{ATTEMPTS}{label}/{run_id}/a{attempt}"


def backfill_branches(installation: str, pipeline: str) -> str:
    """Return the prefix of the branches on which backfills of a pipeline collect partitions."""
    return f"{_BACKFILLS}{installation}/{pipeline}/"


def backfill_branch(installation: str, pipeline: str, request: str) -> str:
    """Name the branch on which a backfill collects the partitions that it publishes together.

    Args:
        request: digest of the request for the backfill, so that another request does not find these partitions.
    """
    return f"{backfill_branches(installation, pipeline)}{request}"


def is_backfill_branch(name: str) -> bool:
    """Return True if a branch is named like one on which a backfill collects its partitions."""
    return name.startswith(_BACKFILLS)


def spark_queue(task_queue: str) -> str:
    """Return the name of the task queue for activities that run Spark."""
    return f"{task_queue}-spark"


def schedule_id(installation: str, pipeline: str) -> str:
    """Return the id of a pipeline's schedule, one for each installation."""
    return f"sluice-{installation}-schedule-{pipeline}"


def start_id(installation: str, pipeline: str, key: str) -> str:
    """Return the workflow id of a start that a program requested, one for each pipeline and key.

    Neither an installation nor a pipeline has a colon in its name, so two starts never have one id.
    """
    return f"sluice-{installation}-start:{pipeline}:{key}"


def reaper_schedule_id(installation: str) -> str:
    """Return the id of the reaper's schedule, one for each installation."""
    return f"sluice-reaper-{installation}"


def backfill_id(installation: str, pipeline: str) -> str:
    """Return the workflow id of a pipeline's backfill, one for each installation."""
    return f"sluice-{installation}-backfill-{pipeline}"


def attempt_of(branch: str) -> int | None:
    """Return the number of the attempt that a branch is named after, or None."""
    match = _ATTEMPT.fullmatch(branch)
    return int(match[2]) if match else None


def run_of(branch: str) -> str:
    """Return the id of the run that a branch is named after, or ""."""
    match = _ATTEMPT.fullmatch(branch)
    return match[1] if match else ""


def quarantine_branch(pipeline: str, day: str, run_id: str) -> str:
    """Name a quarantined branch so that a person sees pipeline, date (`2026-01-31`) and run."""
    return f"quarantine/{pipeline}/{day}/{run_id}"


def joined_name(elements: Iterable[str]) -> str:
    """Join the elements of a table's or namespace's key with dots, so that different keys have different names.

    An element that contains a dot is quoted, so it cannot be mistaken for a name of Sluice's own, which contains none.
    """
    return ".".join(quoted(each) if not each or set(each) & set(".`") else each for each in elements)


def name_elements(name: str) -> list[str]:
    """Split a name into the elements that `joined_name` joined."""
    elements = _ELEMENT.findall(name)
    return [each[1:-1].replace("``", "`") if each.startswith("`") else each for each in elements]


def namespaces_of(table: str) -> list[tuple[str, ...]]:
    """Return the keys of the namespaces that contain a table, outermost first."""
    elements = name_elements(table)
    return [tuple(elements[:end]) for end in range(1, len(elements))]


def quoted(identifier: str) -> str:
    """Quote one identifier for Spark SQL."""
    return "`" + identifier.replace("`", "``") + "`"


def quoted_table(name: str, spark_catalog: str) -> str:
    """Quote a table's full name for Spark SQL."""
    return ".".join(quoted(part) for part in [spark_catalog, *name.split(".")])


def literal(value: object) -> str:
    """Write a value as a Spark SQL literal. Dates become strings, which ANSI mode casts."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{text}'"


def suggestion(wrong: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ` (did you mean 'x'?)`, or an empty string if the word itself is known, or no known word is close.

    Args:
        cutoff: minimum similarity of a close word, from 0 to 1.
    """
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=cutoff)
    return f" (did you mean {close[0]!r}?)" if close and close[0] != wrong else ""


def suggested_run(wrong: str, pipelines: Iterable[str], ids: Iterable[str]) -> str:
    """Return a suggestion for a name that no run has: a nearly equal id, or a close pipeline.

    An id that differs in more than two characters is the id of another run, and not suggested.
    """
    return suggestion(wrong, ids, cutoff=0.9) or suggestion(wrong, pipelines)
