"""The identity of a run in OpenLineage, and of the run that started it."""

import re
import uuid

from sluice.contracts.references import LineageParent

_NAMESPACE = uuid.UUID("6f0f2a4e-5d0b-5c39-8a53-0a1f5e0f7c11")
_PARENT = re.compile(r"(?P<namespace>[^/\s].*)/(?P<name>[^/\s]+)/(?P<run_id>[^/\s]+)")


def lineage_run_id(run_id: str) -> str:
    """Return the OpenLineage run id of a run: its Temporal run id if that is a UUID, else one derived from it."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, run_id))


def parse_parent(text: str) -> LineageParent | None:
    """Parse OPENLINEAGE_PARENT_ID, `NAMESPACE/JOB/RUN_ID`. Return None if it is empty.

    Raises:
        ValueError: the text has another form.
    """
    if not text:
        return None
    parts = _PARENT.fullmatch(text)
    try:
        if parts is None or len(text) > 1_000:
            raise ValueError
        return LineageParent(**{**parts.groupdict(), "run_id": str(uuid.UUID(parts["run_id"]))})
    except ValueError:
        raise ValueError(
            f"{text[:100]!r} is not the id of an OpenLineage run: write NAMESPACE/JOB/RUN_ID, the last of them a UUID, "
            "or leave it empty"
        ) from None
