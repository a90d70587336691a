"""A source: the files that a run loads."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from sluice.base_model import Model
from sluice.errors import InvalidPipeline

Format = Literal["parquet", "csv", "json", "orc"]

SILENT = ("ignorecorruptfiles", "ignoremissingfiles")
"""Endings of settings by which Spark drops data silently."""
_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}


def _as_text(options: object) -> object:
    """Turn the values of options into text, as Spark takes them; what is no mapping is refused later."""
    if not isinstance(options, dict):
        return options
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


TextOptions = Annotated[dict[str, str], BeforeValidator(_as_text)]
"""Options whose values may be written as numbers or booleans."""


class Source(Model):
    """The files to load."""

    path: str | list[str]
    """A file, a directory or a glob pattern, or several."""
    format: Format | None = None
    """How to read them; by default what their suffix says."""
    options: TextOptions = Field(default_factory=dict)
    """Options of Spark's reader, passed through."""
    schema_: str | None = Field(default=None, alias="schema")
    """Columns and types as in `CREATE TABLE`, for files that carry none."""

    model_config = {**Model.model_config, "populate_by_name": True, "serialize_by_alias": True}

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
    def _nothing_dropped(cls, options: dict[str, str]) -> dict[str, str]:
        for key, value in options.items():
            if key.lower() in SILENT or (key.lower() == "mode" and value.upper() != "FAILFAST"):
                raise ValueError(f"{key}: {value} would drop or blank bad rows without a word; leave it out")
        return options

    def reader_format(self) -> Format:
        """Return the format, from the suffix where it is not stated.

        Raises:
            InvalidPipeline: neither says it.
        """
        if self.format:
            return self.format
        for path in self.paths:
            plain = path.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")
            for suffix, known in _SUFFIXES.items():
                if plain.endswith(suffix):
                    return known
        raise InvalidPipeline(
            f"the format of {self.paths[0]!r} cannot be told from its name: set source.format "
            f"to one of {', '.join(sorted(set(_SUFFIXES.values())))}"
        )
