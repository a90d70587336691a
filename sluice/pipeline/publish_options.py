"""Publication options of a pipeline: the message and the metadata of the merge commit."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, ValidationError, WithJsonSchema, field_validator, model_validator

from sluice.base_model import StrictModel
from sluice.errors import InvalidPipeline
from sluice.validation_errors import plain_message

MAX_MESSAGE = 2_000
"""Maximum length of a message, in characters."""
MAX_ENTRIES = 50
MAX_VALUE = 1_000
"""Maximum length of a metadata value, in characters."""
MAX_METADATA_BYTES = 16 * 1024
"""Maximum size of all keys and values together, in bytes of UTF-8: a catalog keeps them in each commit."""
_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_KEY_RULE = (
    "write letters, digits, '.', '_' and '-', beginning and ending with a letter or digit, at most 100 characters"
)
_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Bidirectional classes of characters that make a text appear in another order."""
_VALUES = WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})


class PublishOptions(StrictModel):
    """Publication options, such as the content of the merge commit in addition to its certificate."""

    message: str = ""
    """Message of the merge commit, with its placeholders replaced. Empty means the default message."""
    metadata: Annotated[dict[str, str], _VALUES] = Field(default_factory=dict)
    """Properties of the merge commit, as text, without the prefix that the commit adds."""
    allow_partial: bool = False
    """True if several tables may be published one by one where the catalog cannot commit them together."""

    @model_validator(mode="before")
    @classmethod
    def _nothing_means_the_default(cls, options: object) -> object:
        if not isinstance(options, Mapping | PublishOptions | None):
            raise ValueError("write a mapping, as in {message: Correct the permits of May}")
        return {} if options is None else options

    @field_validator("message", mode="before")
    @classmethod
    def _plain_message(cls, message: object) -> object:
        if message is None:
            return ""
        if not isinstance(message, str):
            raise ValueError(f"a message is a text, not {str(message)[:100]}: put it in quotes")
        text = message.strip()
        if len(text) > MAX_MESSAGE:
            raise ValueError(f"a message of {len(text):,} characters is too long: the limit is {MAX_MESSAGE:,}")
        if problem := _character_problem(text, allowed="\n\t"):
            raise ValueError(f"the message contains {problem}")
        return text

    @field_validator("metadata", mode="before")
    @classmethod
    def _plain_entries(cls, metadata: object) -> object:
        if metadata is None:
            return {}
        if not isinstance(metadata, Mapping):
            raise ValueError("write a mapping of keys to values, as in {owner: film-office}")
        if len(metadata) > MAX_ENTRIES:
            raise ValueError(f"{len(metadata)} entries are too many: the limit is {MAX_ENTRIES}")
        entries = {_key(key): _value(key, value) for key, value in metadata.items()}
        size = sum(len(each.encode()) for entry in entries.items() for each in entry)
        if size > MAX_METADATA_BYTES:
            raise ValueError(f"{size:,} bytes of metadata are too many: the limit is {MAX_METADATA_BYTES:,}")
        return entries


def changed_options(options: PublishOptions, message: str | None, entries: Sequence[str]) -> PublishOptions:
    """Return the options of a pipeline with those that a person gives at the start of a run in their place.

    Args:
        message: the message; None keeps the pipeline's, and an empty one means the default message.
        entries: metadata, each as `KEY=VALUE`. The pipeline's other entries stay.

    Raises:
        InvalidPipeline: an entry or the message is not valid. The error names the option.
    """
    given: dict[str, str] = {}
    for entry in entries:
        key, sign, value = entry.partition("=")
        if not sign:
            raise InvalidPipeline(f"--metadata {entry[:100]!r}: write KEY=VALUE, as in --metadata owner=film-office")
        if key in given:
            raise InvalidPipeline(f"--metadata {key[:100]!r}: the key is given twice")
        given[key] = value
    try:
        return PublishOptions(
            message=options.message if message is None else message,
            metadata={**options.metadata, **given},
            allow_partial=options.allow_partial,
        )
    except ValidationError as error:
        problems = [f"--{each['loc'][0]}: {plain_message(each)}" for each in error.errors()]
        raise InvalidPipeline("\n".join(problems)) from error


def _key(key: object) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(f"{str(key)[:100]!r} is not a valid metadata key: {_KEY_RULE}")
    return key


def _value(key: object, value: object) -> str:
    """Return a value as text: true and false as YAML writes them, numbers as YAML read them."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or not isinstance(value, str | int | float):
        what = "has no value" if value is None else f"is a {'mapping' if isinstance(value, Mapping) else 'list'}"
        raise ValueError(f"{key!r} {what}: give a text, a number, true or false")
    text = str(value)
    if len(text) > MAX_VALUE:
        raise ValueError(f"{key!r} has {len(text):,} characters: the limit is {MAX_VALUE:,}")
    if problem := _character_problem(text):
        raise ValueError(f"{key!r} contains {problem}")
    return text


def _character_problem(text: str, allowed: str = "") -> str:
    """Return a message about the first character that is refused, or "".

    Control and reordering characters let a terminal or a page show another text than the one that is there.
    """
    for character in text:
        is_control = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character not in allowed
        if is_control or unicodedata.bidirectional(character) in _REORDERING:
            return f"the control character U+{ord(character):04X}: leave it out"
    return ""
