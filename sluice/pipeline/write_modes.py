"""The write modes of the built-in job: one table with the traits of each.

To add a mode: add its name to `Mode`, its entry to `WRITE_MODES`, and its function to the table in
`spark_jobs/ingest.py`. Validation, the workflow, the activities and `start_run` read this table; none of them compares
a mode with a name (`tests/unit/project/test_house.py`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sluice.identifiers import suggestion

Mode = Literal["append", "overwrite", "overwrite_partitions", "merge", "sql", "compact", "requeue"]
DEFAULT_MODE: Mode = "append"
LoadedFilePolicy = Literal["skip", "refuse", "reload"]
"""Policy for files that the table contains already: leave them out, refuse the run, or load all files again."""

Replaced = Literal["", "table", "partitions"]
"""The rows that a load replaces: none, those of the table, or those of partitions."""


@dataclass(frozen=True)
class WriteMode:
    """Traits of a write that follow from its mode."""

    summary: str
    """Action of the job on the rows, as the end of a sentence."""
    required: frozenset[str] = frozenset({"source"})
    """The fields of `write` that a pipeline of this mode must give."""
    optional: frozenset[str] = frozenset({"transform"})
    """The other fields of `FIELDS` that it may give."""
    reads_tables: bool = False
    """True if it changes existing rows, in any number of tables, and may leave some of the tables unchanged."""
    schema_is_fixed: bool = True
    """True if tables keep their columns, so that checks can be compared with them before Spark starts."""
    can_be_rebased: bool = False
    """True if its files can be added to a newer main instead of being rewritten."""
    rebased_by_default: bool = False
    """True if a rebase is the default, since a second write would produce the same rows."""
    keeps_rows: bool = False
    """True if each table must have the same number of rows before and after."""
    needs_jvm: bool = False
    """True if the job calls Java in its own process. A session on a Spark Connect server has no Java there."""
    reads_source_alone: bool = False
    """True if the size of the source determines the size of the job, since it reads nothing else."""
    counts_rows: bool = True
    """True if the number of rows that the job counts while it writes can be compared with that of its snapshots."""
    loaded: LoadedFilePolicy = "skip"
    """Default policy for source files that were loaded into the table before."""
    knows_its_rows: bool = False
    """True if the new rows can be distinguished from the existing ones, so that bad ones can be quarantined."""
    replaces_rows: bool = False
    """True if each load replaces rows of the previous one, so that rows of an older load no longer belong in the
    table."""
    replaces_table: bool = False
    """True if each load replaces all rows of the table."""
    replaces_partitions: bool = False
    """True if each load replaces all rows of those partitions of the table that it has rows for."""
    order_matters: bool = False
    """True if rows of a later load replace rows of an earlier one, so that no load may overtake another."""
    moves_quarantined_rows: bool = False
    """True if it moves rows from the second table of the pipeline, a quarantine table, into the first."""
    is_for_pipelines: bool = True
    """True if a pipeline file may state the mode; False if only a command of Sluice uses it."""
    may_repeat: bool = False
    """True if a run may start with the same input as an earlier one without `--again`."""

    @property
    def replaces(self) -> Replaced:
        """The rows that each load replaces: those of the table, those of partitions, or none."""
        if not self.replaces_rows:
            return ""
        return "partitions" if self.replaces_partitions else "table"


_OTHER_NAMES = {"upsert": "merge", "insert": "append", "replace": "overwrite", "update": "merge", "delete": "sql"}
"""Names of modes in other tools."""
FIELDS = ("statements", "source", "transform", "options", "keys")
"""The fields of `write` that depend on the mode."""

WRITE_MODES: dict[Mode, WriteMode] = {
    "append": WriteMode(
        "adds the rows of the source to the table",
        can_be_rebased=True,
        rebased_by_default=True,
        reads_source_alone=True,
        knows_its_rows=True,
    ),
    "overwrite": WriteMode(
        "replaces all rows of the table by those of the source",
        reads_source_alone=True,
        knows_its_rows=True,
        replaces_rows=True,
        replaces_table=True,
        order_matters=True,
        loaded="reload",  # if files that were loaded before were left out, their rows would leave the table
    ),
    "overwrite_partitions": WriteMode(
        "replaces the partitions that the source has rows for",
        reads_source_alone=True,
        knows_its_rows=True,
        replaces_rows=True,
        replaces_partitions=True,
        order_matters=True,
        loaded="reload",
    ),
    "merge": WriteMode(
        "updates the rows that have the same keys in the source, and adds the source's other rows",
        required=frozenset({"source", "keys"}),
        counts_rows=False,  # it reads its source more than once
        knows_its_rows=True,
        order_matters=True,
    ),
    "sql": WriteMode(
        "runs statements on the tables, in their order",
        required=frozenset({"statements"}),
        optional=frozenset(),
        reads_tables=True,
        schema_is_fixed=False,
        can_be_rebased=True,
        counts_rows=False,
        order_matters=True,
    ),
    "compact": WriteMode(
        "rewrites small data files into fewer, larger ones with the same rows",
        required=frozenset(),
        optional=frozenset({"options"}),
        reads_tables=True,
        keeps_rows=True,
        needs_jvm=True,
        counts_rows=False,
        may_repeat=True,  # small files come back
    ),
    "requeue": WriteMode(
        "moves quarantined rows back into their table",
        required=frozenset({"statements"}),
        optional=frozenset({"keys"}),
        reads_tables=True,
        counts_rows=False,
        knows_its_rows=True,
        moves_quarantined_rows=True,
        is_for_pipelines=False,
    ),
}

PROGRAM = WriteMode(
    "runs a PySpark program of yours on the branch",
    required=frozenset(),
    optional=frozenset({"source"}),
    reads_tables=True,
    schema_is_fixed=False,
    can_be_rebased=True,
    counts_rows=False,
    order_matters=True,
    loaded="reload",
)
"""Traits of a program of the user's, which may do anything to its tables."""


_NEEDED = {
    "keys": "the columns that identify a row, as in `keys: [id]`",
    "statements": "the SQL to run, as in `statements: [DELETE FROM t.x WHERE id < 10]`",
}
"""By field that one mode alone requires: its meaning and an example."""


def field_problem(mode: Mode, given: Collection[str]) -> str | None:
    """Return a message about the first field of a write that its mode needs or does not allow, or None.

    Args:
        given: the names out of `FIELDS` for which the pipeline gives a value.
    """
    traits = WRITE_MODES[mode]
    for field in FIELDS:
        missing = field in traits.required and field not in given
        excess = field in given and field not in traits.required | traits.optional
        if missing or excess:
            return _problem(mode, field, missing)
    return None


def _problem(mode: Mode, field: str, missing: bool) -> str:
    modes = {name: each for name, each in WRITE_MODES.items() if each.is_for_pipelines}
    takers = [name for name, each in modes.items() if field in each.required | each.optional]
    if len(takers) == 1 and missing:
        return f"`mode: {mode}` needs `{field}`: {_NEEDED[field]}"
    if len(takers) == 1 and field in WRITE_MODES[takers[0]].required:
        return f"`{field}` need `mode: {takers[0]}`, and the mode is `{mode}`"
    if len(takers) == 1:
        return f"`{field}` go with `mode: {takers[0]}`; write those of a reader under `source`"
    if missing:
        return "give a source: the files to load"
    return f"`mode: {mode}` reads tables, not a source: it {WRITE_MODES[mode].summary}"


def unknown_mode(mode: str) -> str:
    """Return a message about an unknown mode, with the modes of pipelines and the one that is probably meant."""
    modes = [name for name, each in WRITE_MODES.items() if each.is_for_pipelines]
    meant = _OTHER_NAMES.get(mode.lower())
    close = f" ({mode} is {meant!r})" if meant else suggestion(mode, modes)
    return f"{', '.join(map(repr, modes[:-1]))} or {modes[-1]!r}, not {mode!r}{close}"
