"""The write modes of the built-in job, one table that says all about each.

To add a mode: add its name to `Mode`, its entry to `WRITE_MODES`, and its function to the table in
`spark_jobs/ingest.py`. Validation, the workflow, the activities and `start_run` ask this table; none of them compares
a mode with a name (`tests/unit/test_house.py`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sluice.identifiers import suggestion

Mode = Literal["append", "overwrite", "overwrite_partitions", "merge", "sql", "compact", "requeue"]
DEFAULT_MODE: Mode = "append"
LoadedFilePolicy = Literal["skip", "refuse", "reload"]
"""What to do with files that the table holds already: leave them out, refuse the run, or load all files again."""

Replaced = Literal["", "table", "partitions"]
"""What a load replaces."""


@dataclass(frozen=True)
class WriteMode:
    """What is true of a write because of its mode."""

    summary: str
    """What the job does with the rows, in one sentence."""
    required: frozenset[str] = frozenset({"source"})
    """The fields of `write` that a pipeline of this mode must give."""
    optional: frozenset[str] = frozenset({"transform"})
    """The other fields of `FIELDS` that it may give."""
    reads_tables: bool = False
    """Whether it changes rows that are there, of any number of tables, and may leave some of the tables as they are."""
    schema_is_fixed: bool = True
    """Whether tables keep their columns, so that checks can be compared with them before Spark starts."""
    can_be_rebased: bool = False
    """Whether its files can be added to a newer main instead of being rewritten."""
    rebased_by_default: bool = False
    """Whether that is done where the pipeline does not choose: its files hold what a second write would hold."""
    keeps_rows: bool = False
    """Whether each table must hold as many rows afterwards as before."""
    needs_jvm: bool = False
    """Whether the job calls Java in its own process, which a session on a Spark Connect server has not."""
    reads_source_alone: bool = False
    """Whether the size of the source is the size of the job."""
    counts_rows: bool = True
    """Whether the rows that the job counts while it writes can be compared with those of its snapshots."""
    loaded: LoadedFilePolicy = "skip"
    """What becomes of source files that were loaded into the table before, where the pipeline does not say it."""
    knows_its_rows: bool = False
    """Whether the rows that it brings can be told from those that were there, so that bad ones can be quarantined."""
    replaces_rows: bool = False
    """Whether each load takes the place of the last, so that rows of an older one have no place any more."""
    replaces_table: bool = False
    """Whether each load takes the place of all rows of the table."""
    replaces_partitions: bool = False
    """Whether each load takes the place of all rows of the partitions of the table that it has rows for."""
    order_matters: bool = False
    """Whether rows of a later load take the place of rows of an earlier one, so that loads must not overtake others."""
    moves_quarantined_rows: bool = False
    """Whether it moves rows from the second table of the pipeline, a quarantine table, into the first."""
    is_for_pipelines: bool = True
    """Whether a pipeline file can ask for it, and not a command of Sluice alone."""
    may_repeat: bool = False
    """Whether a run is started again with the same input without being asked to."""

    @property
    def replaces(self) -> Replaced:
        """What each load replaces: the table, partitions of it, or nothing."""
        if not self.replaces_rows:
            return ""
        return "partitions" if self.replaces_partitions else "table"


_OTHER_NAMES = {"upsert": "merge", "insert": "append", "replace": "overwrite", "update": "merge", "delete": "sql"}
"""What other tools call a mode."""
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
        loaded="reload",  # without a file that was loaded before, its rows would leave the table
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
        "updates the rows whose keys the source repeats, and adds its other rows",
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
"""What is true of a program of the user's, which may do anything to its tables."""


def field_problem(mode: Mode, given: Collection[str]) -> str | None:
    """Return what is wrong with the fields that a write gives, those that its mode needs or does not take.

    Args:
        given: the names out of `FIELDS` that the pipeline gives a value for.
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
    if len(takers) == 1 and field in WRITE_MODES[takers[0]].required:
        return f"`mode: {takers[0]}` and `{field}` go together"
    if len(takers) == 1:
        return f"`{field}` go with `mode: {takers[0]}`; those of a reader are the source's"
    if missing:
        return "give a source: the files to load"
    return f"`mode: {mode}` reads tables, not a source: it {WRITE_MODES[mode].summary}"


def unknown_mode(mode: str) -> str:
    """Return, for a person, that there is no such mode, which ones a pipeline may have, and which one is meant."""
    modes = [name for name, each in WRITE_MODES.items() if each.is_for_pipelines]
    meant = _OTHER_NAMES.get(mode.lower())
    close = f" ({mode} is {meant!r})" if meant else suggestion(mode, modes)
    return f"{', '.join(map(repr, modes[:-1]))} or {modes[-1]!r}, not {mode!r}{close}"
