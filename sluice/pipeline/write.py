"""The `write` of a pipeline: its job, its source and its mode."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from sluice.base_model import StrictModel
from sluice.durations import Duration
from sluice.job_environment import values_problem
from sluice.pipeline.source import SILENT, Source, TextOptions, as_text
from sluice.pipeline.source_options import CONF_OF_READERS
from sluice.pipeline.write_modes import (
    DEFAULT_MODE,
    FIELDS,
    WRITE_MODES,
    LoadedFilePolicy,
    Mode,
    WriteMode,
    field_problem,
)
from sluice.sql.expression import query_problem, statement_problem, tables_of, without_comments

INGEST = "ingest"
SOURCE_VIEW = "source"
"""Name of the view with the rows that were read, for a transform."""
_RESERVED = (
    "spark.sql.iceberg.snapshot-property.",
    "spark.sql.extensions",
    "spark.sql.storeAssignmentPolicy",
    "spark.submit.deployMode",
)
"""Prefixes of the Spark settings that a pipeline may not set."""


_DELETE = re.compile(r"\s*DELETE\s+FROM\b", re.IGNORECASE)


class Write(StrictModel):
    """The write that brings rows to the branch: by the built-in job, or by any PySpark program."""

    job: str = INGEST
    source: Source | None = None
    mode: Mode = DEFAULT_MODE
    keys: list[str] = Field(default_factory=list)
    """Columns whose values `mode: merge` compares to match rows."""
    transform: str | None = None
    """A query over the view `source`, run between reading and writing."""
    statements: list[str] = Field(default_factory=list)
    """Statements that `mode: sql` runs on the branch, in this order."""
    options: TextOptions = Field(default_factory=dict)
    """Options of Iceberg's rewrite of data files, for `mode: compact`."""
    args: list[str] = Field(default_factory=list)
    """Arguments of the program."""
    conf: TextOptions = Field(default_factory=dict)
    """Additional Spark configuration."""
    environment: TextOptions = Field(default_factory=dict)
    """Environment variables of the program, by name. They are stored with the run: no secrets."""
    engine: Literal["auto", "connect"] = "auto"
    """The Spark of a program. With `connect`, the program may run on the warm server that programs share."""
    attempts: int = Field(default=3, ge=1, le=20)
    """Maximum number of attempts at the write before the run fails."""
    timeout: Duration = 24 * 3600.0
    """Maximum duration of one attempt, in seconds."""

    on_conflict: Literal["auto", "rebase", "rewrite"] = "auto"
    """Reaction if main changed a table meanwhile: add the written files to the newer table, or run the write again."""

    @property
    def rebases(self) -> bool:
        """True if its files are added to a newer main after a conflict, instead of being rewritten."""
        if self.on_conflict != "auto":
            return self.on_conflict == "rebase"
        return self.built_in and self.traits.rebased_by_default and not self._transform_reads_tables

    @property
    def may_depend_on_other_tables(self) -> bool:
        """True if it runs again when main changed a table that its checks read and that it does not write."""
        if self.rebases:
            return False
        if self.on_conflict == "rewrite" or not self.built_in or self._transform_reads_tables:
            return True
        return self.traits.reads_tables and not self.traits.keeps_rows

    @property
    def _transform_reads_tables(self) -> bool:
        if self.transform is None:
            return False
        return not set(tables_of(self.transform)) <= {SOURCE_VIEW}

    @property
    def built_in(self) -> bool:
        """True if the built-in job does the write."""
        return self.job == INGEST

    @property
    def traits(self) -> WriteMode:
        """The traits of its mode."""
        return WRITE_MODES[self.mode]

    @property
    def loaded_files(self) -> LoadedFilePolicy:
        """Policy for source files that the table contains already. A program of the user's reads what it wants."""
        stated = self.source.loaded if self.source else None
        return stated or (self.traits.loaded if self.built_in else "reload")

    @property
    def selects_files(self) -> bool:
        """True if main is searched for each file of the source, not for the input as a whole."""
        return self.source is not None and self.loaded_files != "reload"

    @property
    def knows_its_rows(self) -> bool:
        """True if the new rows can be distinguished from the existing ones."""
        return self.built_in and self.traits.knows_its_rows

    @property
    def carries_rows(self) -> bool:
        """True if the files that it adds also contain unchanged rows: matching rows by keys rewrites files."""
        return bool(self.keys)

    @property
    def needs_all_fields(self) -> bool:
        """True if each file must have all columns and fields of the table: a merge would set missing ones to NULL."""
        return bool(self.keys) and not self.transform and not (self.source and self.source.schema_)

    @property
    def only_deletes(self) -> bool:
        """True if it runs only `DELETE FROM` statements."""
        return bool(self.statements) and all(_DELETE.match(each) for each in self.statements)

    @property
    def schema_is_fixed(self) -> bool:
        """True if the tables keep their columns. A program of the user's may change them."""
        return self.built_in and self.traits.schema_is_fixed

    @field_validator("statements")
    @classmethod
    def _only_changes_of_tables(cls, statements: list[str]) -> list[str]:
        plain = [statement.strip().rstrip(";") for statement in statements]
        for statement in plain:
            if why := statement_problem(statement):
                raise ValueError(why)
        return [without_comments(statement) for statement in plain]

    @field_validator("transform")
    @classmethod
    def _only_a_query(cls, transform: str | None) -> str | None:
        if transform is None:
            return None
        plain = transform.strip().rstrip(";")
        if why := query_problem(plain, (SOURCE_VIEW,)):
            raise ValueError(why)
        return without_comments(plain)

    @field_validator("args", mode="before")
    @classmethod
    def _args_as_text(cls, args: object) -> object:
        return [as_text(arg) for arg in args] if isinstance(args, list) else args

    @field_validator("conf")
    @classmethod
    def _conf_is_free(cls, conf: dict[str, str]) -> dict[str, str]:
        for key, value in conf.items():
            if key.startswith(_RESERVED) or key.lower().endswith(SILENT):
                raise ValueError(f"{key} cannot be set by a pipeline: a safe publish depends on it")
            if not key.startswith("spark."):
                raise ValueError(f"{key} is not a Spark setting: they begin with 'spark.'")
            if any(character in key + value for character in "\r\n"):
                raise ValueError(f"{key!r} contains a line break")
        return conf

    @field_validator("environment")
    @classmethod
    def _environment_is_free(cls, environment: dict[str, str]) -> dict[str, str]:
        if why := values_problem(environment):
            raise ValueError(why)
        return environment

    @model_validator(mode="after")
    def _parts_belong_together(self) -> "Write":
        if not self.built_in:
            if self.statements or self.transform or self.keys or self.options or self.mode != DEFAULT_MODE:
                raise ValueError(f"mode, keys, transform, statements and options are only for the job {INGEST!r}")
            if self.source and self.source.loaded == "skip":
                raise ValueError(
                    "`loaded: skip` is only for the job 'ingest', which reads the files that Sluice selects: a program "
                    "of yours may read others; write `loaded: refuse` or `reload`"
                )
            return self
        if reader := [key for key in self.conf if key.lower().startswith(CONF_OF_READERS)]:
            raise ValueError(f"{reader[0]} cannot be set by a pipeline: rows or fields could be lost while reading")
        for field in ("args", "environment"):
            if getattr(self, field):
                raise ValueError(f"{field} is for a program of yours; the job {INGEST!r} does not have it")
        if self.engine != "auto":
            raise ValueError(
                f"engine is for a program of yours: `SPARK_ENGINE` says where the job {INGEST!r} runs; leave it out"
            )
        if problem := field_problem(self.mode, [field for field in FIELDS if getattr(self, field)]):
            raise ValueError(problem)
        if self.on_conflict == "rebase" and not self.traits.can_be_rebased:
            raise ValueError(
                f"the rows of `mode: {self.mode}` depend on the rows of the table, so a conflict needs a rewrite: "
                "leave `on_conflict: rebase` out"
            )
        return self
