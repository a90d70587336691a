"""The source of a write: the files that a run loads."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from sluice.base_model import StrictModel
from sluice.errors import InvalidPipeline
from sluice.pipeline.source_options import check_options, with_spark_encoding
from sluice.pipeline.write_modes import LoadedFilePolicy
from sluice.sql.schema_ddl import schema_problem

Format = Literal["parquet", "csv", "json", "orc"]

SILENT = ("ignorecorruptfiles", "ignoremissingfiles")
"""Endings, in lower case, of settings that make Spark drop data silently."""
_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
_UNSUPPORTED = {
    ".avro": "Avro", ".xlsx": "Excel files", ".xls": "Excel files", ".xml": "XML", ".feather": "Feather",
    ".arrow": "Arrow files",
}  # fmt: skip
"""Well-known formats that Sluice does not read, by suffix."""
_COMPRESSED = (".gz", ".bz2", ".zst")


def as_text(value: object, name: str = "an argument") -> str:
    """Return a text, a number or a boolean as text, in the form that Spark reads.

    Args:
        name: the name of the value in messages.

    Raises:
        ValueError: the value is missing, a list or a mapping.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        what = "nothing" if value is None else f"a {'mapping' if isinstance(value, dict) else 'list'}"
        raise ValueError(f"{name} is {what}: write a text, a number, true or false ('' is an empty text)")
    return str(value)


def _as_text(options: object) -> object:
    """Turn the values of options into text. Validation refuses later what is not a mapping."""
    if not isinstance(options, dict):
        return options
    return {str(key): as_text(value, str(key)[:100]) for key, value in options.items()}


TextOptions = Annotated[dict[str, str], BeforeValidator(_as_text)]
"""Options whose values may be written as numbers or booleans."""


def format_of(path: str) -> Format | None:
    """Return the format that the suffix of a path names, or None."""
    plain = path.lower()
    for suffix in _COMPRESSED:
        plain = plain.removesuffix(suffix)
    return next((format for suffix, format in _SUFFIXES.items() if plain.endswith(suffix)), None)


class Source(StrictModel):
    """The files to load."""

    path: str | list[str]
    """A file, a directory or a glob pattern, or several."""
    format: Format | None = None
    """Format of the files; by default the one that their suffix names."""
    options: TextOptions = Field(default_factory=dict)
    """Options of Spark's reader; those that lose data are refused."""
    schema_: str | None = Field(default=None, alias="schema")
    """Columns and types as in `CREATE TABLE`, without DEFAULT and GENERATED, for files that contain none."""
    loaded: LoadedFilePolicy | None = None
    """Policy for files that the table contains already; by default that of the write mode."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @property
    def paths(self) -> list[str]:
        """The paths, always as a list."""
        return [self.path] if isinstance(self.path, str) else self.path

    @field_validator("path")
    @classmethod
    def _no_empty_path(cls, path: str | list[str]) -> str | list[str]:
        if not path or not all(part.strip() for part in ([path] if isinstance(path, str) else path)):
            raise ValueError("the path is empty")
        return path

    @field_validator("options")
    @classmethod
    def _named_as_in_spark(cls, options: dict[str, str]) -> dict[str, str]:
        return with_spark_encoding(options)

    @field_validator("schema_")
    @classmethod
    def _no_expressions(cls, schema: str | None) -> str | None:
        if schema is not None and (problem := schema_problem(schema)):
            raise ValueError(problem)
        return schema

    @model_validator(mode="after")
    def _nothing_dropped(self) -> "Source":
        check_options(self.options, self.format or next(filter(None, map(format_of, self.paths)), None))
        return self

    def reader_format(self) -> Format:
        """Return the format, by default the one that a suffix names.

        Raises:
            InvalidPipeline: the format is not stated, and no suffix names one.
        """
        if self.format:
            return self.format
        for path in self.paths:
            if known := format_of(path):
                return known
        for path in self.paths:
            if unsupported := _UNSUPPORTED.get(path[path.rfind(".") :].lower()):
                raise InvalidPipeline(
                    f"{path!r}: Sluice does not read {unsupported}: convert the files to Parquet, or write the "
                    "table by a program of yours, `write.job: FILE.py`"
                )
        raise InvalidPipeline(
            f"the format of {self.paths[0]!r} cannot be told from its name: set source.format "
            f"to one of {', '.join(sorted(set(_SUFFIXES.values())))}"
        )
