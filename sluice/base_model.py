"""Base classes of the values that Sluice reads: from files and records, or from messages between processes.

Pydantic builds the validator of a model at its first use, not at the import of its module (`defer_build`): a command
imports more models than it uses. A worker builds all of them when it starts.
"""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Immutable value that refuses unknown keys: a mistake in a user's file, or the field of a newer record."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class WireMessage(BaseModel):
    """Immutable message between processes, or a part of one. It ignores unknown keys: a newer release may add some."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def build_models() -> None:
    """Build the validators of all imported models, so that no workflow task spends its two seconds on that."""
    for model in (*_subclasses(StrictModel), *_subclasses(WireMessage)):
        model.model_rebuild()


def _subclasses(model: type[BaseModel]) -> set[type[BaseModel]]:
    return set(model.__subclasses__()).union(*map(_subclasses, model.__subclasses__()))
