"""Base classes of the values that Sluice reads: from files and records, or from messages between processes."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Immutable value that refuses unknown keys: a mistake in a user's file, or the field of a newer record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WireMessage(BaseModel):
    """Immutable message between processes, or a part of one. It ignores unknown keys: a newer release may add some."""

    model_config = ConfigDict(frozen=True, extra="ignore")
