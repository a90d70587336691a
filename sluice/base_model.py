"""Base classes of the values that Sluice reads: from files and records, or from messages between processes.

Pydantic builds the validator of a model when the model is used first, not when its module is imported
(`defer_build`). A command, and each workflow in its sandbox, imports more models than it uses.
"""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Immutable value that refuses unknown keys: a mistake in a user's file, or the field of a newer record."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class WireMessage(BaseModel):
    """Immutable message between processes, or a part of one. It ignores unknown keys: a newer release may add some."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
