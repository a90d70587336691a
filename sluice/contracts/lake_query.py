"""A query of the command line about the lake, as a command sends it to a worker."""

from pydantic import SerializeAsAny

from sluice.base_model import WireMessage

LAKE_QUERY = "LakeQuery"
"""Name of the workflow of a query about the lake, for clients that do not import the workflow."""


class LakeQueryMessage(WireMessage):
    """Query about the lake. The activity of the name `kind` answers it."""

    kind: str


class SentLakeQuery(WireMessage):
    """Input of the workflow `LakeQuery`, as a command sends it. A worker reads it as a `LakeQueryRequest`."""

    query: SerializeAsAny[LakeQueryMessage]
