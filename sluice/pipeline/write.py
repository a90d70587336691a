"""The `write` of a pipeline: which job writes the rows, from what, and in which mode."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from sluice.base_model import Model
from sluice.pipeline.durations import Duration
from sluice.pipeline.source import SILENT, Source, TextOptions
from sluice.pipeline.write_modes import DEFAULT_MODE, FIELDS, WRITE_MODES, Mode, WriteMode, field_problem
from sluice.sql.expression import query_problem, tables_of

INGEST = "ingest"
SOURCE_VIEW = "source"
"""The name by which a transform finds the rows that were read."""
_STATEMENT = re.compile(
    r"\s*(DELETE\s+FROM|UPDATE|MERGE\s+INTO|INSERT\s+(INTO|OVERWRITE)|(CREATE|ALTER)\s+TABLE|WITH)\b", re.I
)
_OTHER_BRANCH = re.compile(r"`[^`]*@[^`]*`|[\w.]@\w")
"""A table with a reference (`table@branch`), which a catalog with branches reads: it would bypass the branch."""
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_RESERVED = (
    "spark.sql.iceberg.snapshot-property.",
    "spark.sql.extensions",
    "spark.sql.storeAssignmentPolicy",
    "spark.submit.deployMode",
)
"""The Spark settings that a pipeline cannot set."""


class Write(Model):
    """How the branch gets its rows: by the built-in job, or by any PySpark program."""

    job: str = INGEST
    source: Source | None = None
    mode: Mode = DEFAULT_MODE
    keys: list[str] = Field(default_factory=list)
    """The columns that `mode: merge` matches rows by."""
    transform: str | None = None
    """A query over the view `source`, run between reading and writing."""
    statements: list[str] = Field(default_factory=list)
    """What `mode: sql` runs on the branch, in this order."""
    options: TextOptions = Field(default_factory=dict)
    """For `mode: compact`: options of Iceberg's rewrite of data files."""
    args: list[str] = Field(default_factory=list)
    """Arguments of the program."""
    conf: TextOptions = Field(default_factory=dict)
    """More Spark configuration."""
    attempts: int = Field(default=3, ge=1, le=20)
    """How often the write is tried before the run fails."""
    timeout: Duration = 24 * 3600.0
    """How long one attempt may take, in seconds."""

    on_conflict: Literal["auto", "rebase", "rewrite"] = "auto"
    """What to do when main changed a table meanwhile: add the written files to it as it is now, or write again."""

    @property
    def rebases(self) -> bool:
        """Whether its files are added to a newer main after a conflict, instead of being rewritten."""
        if self.on_conflict != "auto":
            return self.on_conflict == "rebase"
        if not self.built_in or not self.traits.rebased_by_default:
            return False
        if self.transform is None:
            return True
        return query_problem(self.transform) is None and set(tables_of(self.transform)) <= {SOURCE_VIEW}

    @property
    def built_in(self) -> bool:
        """Whether the built-in job does it."""
        return self.job == INGEST

    @property
    def traits(self) -> WriteMode:
        """What is true of the write because of its mode."""
        return WRITE_MODES[self.mode]

    @property
    def schema_is_fixed(self) -> bool:
        """Whether the tables keep their columns: a program of the user's may change them."""
        return self.built_in and self.traits.schema_is_fixed

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

    @field_validator("args", mode="before")
    @classmethod
    def _args_as_text(cls, args: object) -> object:
        return [str(arg) for arg in args] if isinstance(args, list) else args

    @field_validator("conf")
    @classmethod
    def _conf_is_free(cls, conf: dict[str, str]) -> dict[str, str]:
        for key, value in conf.items():
            if key.startswith(_RESERVED) or key.lower().endswith(SILENT):
                raise ValueError(f"{key} is not for a pipeline to set: a safe publish rests on it")
            if not key.startswith("spark."):
                raise ValueError(f"{key} is no Spark setting: they begin with 'spark.'")
            if any(character in key + value for character in "\r\n"):
                raise ValueError(f"{key!r} holds a line break")
        return conf

    @model_validator(mode="after")
    def _parts_belong_together(self) -> "Write":
        if not self.built_in:
            if self.statements or self.transform or self.keys or self.options or self.mode != DEFAULT_MODE:
                raise ValueError(f"mode, keys, transform, statements and options are of the job {INGEST!r}")
            return self
        if self.args:
            raise ValueError(f"args are for a program of yours; the job {INGEST!r} takes none")
        if problem := field_problem(self.mode, [field for field in FIELDS if getattr(self, field)]):
            raise ValueError(problem)
        if self.on_conflict == "rebase" and not self.traits.can_be_rebased:
            raise ValueError(f"`mode: {self.mode}` rests on what the table holds: after a conflict it is rewritten")
        return self
