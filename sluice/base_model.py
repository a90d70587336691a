"""The base of every message and every part of a pipeline."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """An immutable value. An unknown key is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
