"""Decode large payloads, and parse the SQL in them, in a thread.

So neither an event loop nor a workflow waits for that. Each decoding validates the pipeline: the SQL of five thousand
checks takes seconds the first time, more than a workflow may take for one step. Parsed SQL is cached
(`sluice/sql/parsing.py`).
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

from sluice.base_model import WireMessage

LARGE = 32 * 1024
"""Minimum size of a payload that is converted in a thread, in bytes. Smaller ones take milliseconds."""
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
    """A codec that parses the SQL of decoded pipelines in a thread, before a workflow gets them."""

    def __init__(self, codec: PayloadCodec) -> None:
        self.codec = codec

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encode payloads as the codec does."""
        return await self.codec.encode(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decode payloads as the codec does. Parse the SQL of their pipelines, which fills the cache."""
        decoded = await self.codec.decode(payloads)
        for payload in decoded:
            if len(payload.data) >= LARGE and _PIPELINE.search(payload.data):
                await asyncio.to_thread(_parse_pipeline, payload.data)
        return decoded


def _parse_pipeline(message: bytes) -> None:
    """Validate the pipeline of a message. An invalid one is reported where an activity or workflow decodes it."""
    from sluice.pipeline.model import Pipeline  # noqa: PLC0415
    from sluice.publishing.watched_tables import watched_tables  # noqa: PLC0415  # commands start without it

    class WithPipeline(WireMessage):
        pipeline: Pipeline

    try:
        watched_tables(WithPipeline.model_validate_json(message).pipeline.tables)
    except ValidationError:
        return
