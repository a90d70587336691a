"""Base class of every message and every part of a pipeline."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Immutable value. An unknown key is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
