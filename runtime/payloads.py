"""Decode large payloads in a thread, where the SQL in them is parsed, too.

No event loop and no workflow waits for that. A pipeline is validated wherever it is decoded: the SQL of five thousand
checks takes seconds the first time, which is more than a workflow may take for a step. What was parsed once is
remembered (`sluice/sql/parsing.py`).
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

LARGE = 32 * 1024
"""A payload of so many bytes is converted in a thread: smaller ones take milliseconds."""
_PIPELINE = re.compile(rb'"pipeline"\s*:\s*\{')


@dataclass(frozen=True)
class ThreadedDataConverter(DataConverter):
    """A data converter that decodes large payloads, such as inputs of activities, in a thread."""

    async def decode(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """Decode payloads into values."""
        decoding = super().decode(payloads, type_hints)
        if sum(len(payload.data) for payload in payloads) < LARGE:
            return await decoding
        return await asyncio.to_thread(asyncio.run, decoding)


class ParsingCodec(PayloadCodec):
    """A codec that parses the SQL of the pipelines that it decodes, in a thread, before a workflow gets them."""

    def __init__(self, codec: PayloadCodec) -> None:
        self.codec = codec

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encode payloads as the codec does."""
        return await self.codec.encode(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decode payloads as the codec does; remember what their pipelines' SQL parses to."""
        decoded = await self.codec.decode(payloads)
        for payload in decoded:
            if len(payload.data) >= LARGE and _PIPELINE.search(payload.data):
                await asyncio.to_thread(_parse_pipeline, payload.data)
        return decoded


def _parse_pipeline(message: bytes) -> None:
    """Validate the pipeline of a message. If it is invalid, the activity or workflow that decodes it says why."""
    from sluice.pipeline.model import Pipeline  # noqa: PLC0415
    from sluice.publishing.watched_tables import watched_tables  # noqa: PLC0415  # commands start without it

    class WithPipeline(BaseModel):
        pipeline: Pipeline

    try:
        watched_tables(WithPipeline.model_validate_json(message).pipeline.tables)
    except ValidationError:
        return
