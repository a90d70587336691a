"""A pipeline: what to write, what must be true of it, and who decides."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from sluice.base_model import Model
from sluice.checks import AnyCheck
from sluice.checks.base import misfits, place
from sluice.identifiers import branch_name, pipeline_name, suggestion, table_name
from sluice.pipeline.durations import Duration
from sluice.pipeline.source import SILENT, Source, as_text
from sluice.sql.expression import query_problem, tables_of

Mode = Literal["append", "overwrite", "overwrite_partitions", "merge", "sql", "compact"]
OnFailure = Literal["quarantine", "discard"]

INGEST = "ingest"
SOURCE_VIEW = "source"
"""What a transform calls the rows that were read."""
_PARTITION = re.compile(r"(?:(year|month|day|hour)s?\((.+)\))|(?:(bucket|truncate)\((\d+),\s*(.+)\))|([^()]+)")
_OF_TABLES = ("sql", "compact")
"""The modes that read and write tables, any number of them."""
_ORDER = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.I)
_STATEMENT = re.compile(
    r"\s*(DELETE\s+FROM|UPDATE|MERGE\s+INTO|INSERT\s+(INTO|OVERWRITE)|(CREATE|ALTER)\s+TABLE|WITH)\b", re.I
)
_OTHER_BRANCH = re.compile(r"`[^`]*@[^`]*`|[\w.]@\w")
"""A table at a reference, as Iceberg's Nessie catalog reads it: such a write would bypass the branch."""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_OURS = (
    "spark.sql.iceberg.snapshot-property.",
    "spark.sql.extensions",
    "spark.sql.storeAssignmentPolicy",
    "spark.submit.deployMode",
)


def _valid_partition(term: str) -> str:
    if not _PARTITION.fullmatch(term.strip()):
        raise ValueError(
            f"{term!r} is no partition: write column, year(column), month(column), day(column), "
            "hour(column), bucket(16, column) or truncate(4, column)"
        )
    return term.strip()


def partition_parts(term: str) -> tuple[str, int | None, str]:
    """Split a partition term into its transform (`identity` for a bare column), argument and column."""
    match = _PARTITION.fullmatch(term)
    assert match, term
    if match[1]:
        return match[1], None, match[2].strip()
    if match[3]:
        return match[3], int(match[4]), match[5].strip()
    return "identity", None, match[6].strip()


def _valid_order(term: str) -> str:
    match = _ORDER.fullmatch(term.strip())
    if not match or not _PARTITION.fullmatch(match[1]):
        raise ValueError(
            f"{term!r} is no order: write column, column desc, day(column) or bucket(16, column), "
            "with `nulls first` or `nulls last` where it matters"
        )
    return term.strip()


def order_parts(term: str) -> tuple[str, str, str]:
    """Split a term of a sort order: what a partition could be, `ASC` or `DESC`, and `FIRST`, `LAST` or nothing."""
    match = _ORDER.fullmatch(term)
    assert match, term
    return match[1], (match[2] or "asc").upper(), (match[3] or "").upper()


class Write(Model):
    """How the branch gets its rows: by the built-in job, or by any PySpark program."""

    job: str = INGEST
    source: Source | None = None
    mode: Mode = "append"
    keys: list[str] = Field(default_factory=list)
    """The columns that `mode: merge` matches rows by."""
    transform: str | None = None
    """A query over the view `source`, run between reading and writing."""
    statements: list[str] = Field(default_factory=list)
    """What `mode: sql` runs on the branch, in this order."""
    options: dict[str, str] = Field(default_factory=dict)
    """For `mode: compact`: options of Iceberg's rewrite of data files."""
    args: list[str] = Field(default_factory=list)
    """Arguments of the program."""
    conf: dict[str, str] = Field(default_factory=dict)
    """More Spark configuration."""
    attempts: int = Field(default=3, ge=1, le=20)
    """How often the write is tried before the run fails."""
    timeout: Duration = 24 * 3600.0
    """How long one attempt may take, in seconds."""

    on_conflict: Literal["auto", "rebase", "rewrite"] = "auto"
    """What to do when main changed a table meanwhile: add the written files to it as it is now, or write again."""

    @property
    def rebases(self) -> bool:
        """Whether appended files hold what they would hold had they been written to a newer main."""
        if self.on_conflict != "auto":
            return self.on_conflict == "rebase"
        if not self.built_in or self.mode != "append":
            return False
        if self.transform is None:
            return True
        return query_problem(self.transform) is None and set(tables_of(self.transform)) <= {SOURCE_VIEW}

    @property
    def built_in(self) -> bool:
        """Whether the built-in job does it."""
        return self.job == INGEST

    @property
    def reads_tables(self) -> bool:
        """Whether it changes rows that are there, and may leave some of the tables as they are."""
        return self.mode in _OF_TABLES

    @field_validator("statements")
    @classmethod
    def _only_changes_of_rows(cls, statements: list[str]) -> list[str]:
        for statement in statements:
            if not _STATEMENT.match(statement):
                raise ValueError(
                    f"{' '.join(statement.split())[:60]!r} is no DELETE FROM, UPDATE, MERGE INTO, INSERT, "
                    "CREATE TABLE or ALTER TABLE"
                )
            if _OTHER_BRANCH.search(_TEXT.sub("", statement)):
                raise ValueError(f"{' '.join(statement.split())[:60]!r} names a branch: it runs on the run's own")
        return [statement.strip().rstrip(";") for statement in statements]

    @field_validator("options", mode="before")
    @classmethod
    def _options_as_text(cls, options: object) -> object:
        return as_text(options)

    @field_validator("args", mode="before")
    @classmethod
    def _args_as_text(cls, args: object) -> object:
        return [str(arg) for arg in args] if isinstance(args, list) else args

    @field_validator("conf", mode="before")
    @classmethod
    def _conf_as_text(cls, conf: object) -> object:
        return as_text(conf)

    @field_validator("conf")
    @classmethod
    def _conf_is_free(cls, conf: dict[str, str]) -> dict[str, str]:
        for key, value in conf.items():
            if key.startswith(_OURS) or key.lower().endswith(SILENT):
                raise ValueError(f"{key} is not for a pipeline to set: a safe publish rests on it")
            if not key.startswith("spark."):
                raise ValueError(f"{key} is no Spark setting: they begin with 'spark.'")
            if any(character in key + value for character in "\r\n"):
                raise ValueError(f"{key!r} holds a line break")
        return conf

    @model_validator(mode="after")
    def _parts_belong_together(self) -> "Write":
        if not self.built_in:
            if self.statements or self.transform or self.keys or self.options or self.mode != "append":
                raise ValueError(f"mode, keys, transform, statements and options are of the job {INGEST!r}")
            return self
        if self.args:
            raise ValueError(f"args are for a program of yours; the job {INGEST!r} takes none")
        if (self.mode == "sql") != bool(self.statements):
            raise ValueError("`mode: sql` and `statements` go together")
        if self.reads_tables and (self.source or self.transform):
            raise ValueError(f"`mode: {self.mode}` reads tables, not a source")
        if self.options and self.mode != "compact":
            raise ValueError("`options` go with `mode: compact`; those of a reader are the source's")
        if not self.reads_tables and not self.source:
            raise ValueError("give a source: the files to load")
        if self.on_conflict == "rebase" and self.mode not in ("append", "sql"):
            raise ValueError(f"`mode: {self.mode}` rests on what the table holds: it is written again after a conflict")
        if (self.mode == "merge") != bool(self.keys):
            raise ValueError("`mode: merge` and `keys` go together")
        return self


class Table(Model):
    """A table that the run may change, and what must be true of it then."""

    partition_by: list[Annotated[str, AfterValidator(_valid_partition)]] = Field(default_factory=list)
    sort_by: list[Annotated[str, AfterValidator(_valid_order)]] = Field(default_factory=list)
    """The order of rows that a new table gets, for this write and all that follow."""
    properties: dict[str, str] = Field(default_factory=dict)
    comment: str = ""
    comments: dict[str, str] = Field(default_factory=dict)
    """Comments on columns, by name."""
    checks: list[AnyCheck] = Field(default_factory=list)
    on_bad_rows: Literal["fail", "quarantine"] = "fail"
    """Whether rows that break a check keep the whole run out, or go to `<table>__quarantine`."""
    max_bad_rows: int | None = Field(default=None, ge=0)
    max_bad_proportion: float | None = Field(default=None, ge=0, le=1)
    """Caps: with more bad rows, the whole run is kept out all the same."""

    @model_validator(mode="after")
    def _capped(self) -> "Table":
        caps = [cap for cap in (self.max_bad_rows, self.max_bad_proportion) if cap is not None]
        if self.on_bad_rows == "quarantine" and not caps:
            raise ValueError("on_bad_rows: quarantine takes a cap: give max_bad_rows, max_bad_proportion or both")
        if self.on_bad_rows == "fail" and caps:
            raise ValueError("max_bad_rows and max_bad_proportion go with `on_bad_rows: quarantine`")
        return self

    @field_validator("properties", mode="before")
    @classmethod
    def _as_text(cls, properties: object) -> object:
        return as_text(properties)


def fit_problems(name: str, table: Table, types: Mapping[str, str]) -> list[str]:
    """Say, one by one, what a pipeline says of a table that a table with these columns cannot have.

    Args:
        types: the Iceberg type of each column.
    """
    found = [f"{place(check)}{name}: {why}" for check in table.checks for why in misfits(check, types)]
    terms = [*table.partition_by, *(order_parts(term)[0] for term in table.sort_by)]
    named = [partition_parts(term)[2] for term in terms]
    return found + [
        f"{name}: the pipeline names the column {column!r}, which is not there{suggestion(column, types)}"
        for column in dict.fromkeys([*named, *table.comments])
        if column not in types
    ]


class Approval(Model):
    """Who must say yes before the merge, and until when."""

    required: int = Field(default=1, ge=1, le=100)
    """How many different people."""
    four_eyes: bool = False
    """Whether the starter is none of them."""
    timeout: Duration = 24 * 3600.0
    """How long they have, in seconds. No answer in time means no."""


class Pipeline(Model):
    """A whole pipeline, valid."""

    name: Annotated[str, AfterValidator(pipeline_name)]
    description: str = ""
    branch: Annotated[str, AfterValidator(branch_name)] | None = None
    """What the branches of its runs are called after; by default the name."""
    write: Write
    tables: dict[Annotated[str, AfterValidator(table_name)], Table] = Field(min_length=1)
    approval: Approval | None = None
    on_failure: OnFailure = "quarantine"
    keep: Duration = 14 * 86400.0
    """How long a quarantined branch is kept, in seconds."""

    @field_validator("tables", mode="before")
    @classmethod
    def _bare_tables(cls, tables: object) -> object:
        if isinstance(tables, list):
            return {str(name): {} for name in tables}
        if isinstance(tables, dict):
            return {name: {} if table is None else table for name, table in tables.items()}
        return tables

    @field_validator("approval", mode="before")
    @classmethod
    def _auto(cls, approval: object) -> object:
        return None if approval == "auto" else approval

    @model_validator(mode="after")
    def _one_target(self) -> "Pipeline":
        if self.write.built_in and not self.write.reads_tables and len(self.tables) != 1:
            raise ValueError(f"the job {INGEST!r} writes one table; {len(self.tables)} are named")
        return self

    @property
    def label(self) -> str:
        """What the branches of its runs are called after."""
        return self.branch or self.name

    @property
    def digest(self) -> str:
        """The SHA-256 of what the pipeline says, in hexadecimal."""
        said = self.model_dump_json(by_alias=True, exclude={"tables": {"__all__": {"checks": {"__all__": {"at"}}}}})
        return hashlib.sha256(said.encode()).hexdigest()
