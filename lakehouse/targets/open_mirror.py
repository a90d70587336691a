"""Open a target that mirrors tables, by its kind."""

from lakehouse.targets.glue import GlueMirror
from lakehouse.targets.mirror import Mirror
from lakehouse.targets.rest import RestMirror
from lakehouse.targets.snowflake import SnowflakeMirror
from sluice.errors import BadEnvironment
from sluice.registration.target_kinds import GlueTarget, RestTarget, SnowflakeTarget, TableTarget


def open_mirror(target: TableTarget) -> Mirror:
    """Open a target that mirrors tables.

    Raises:
        ServiceUnavailable: it does not answer.
        BadEnvironment: a secret cannot be read, or a library is missing.
    """
    if isinstance(target, RestTarget):
        return RestMirror(target)
    if isinstance(target, GlueTarget):
        return GlueMirror(target)
    if isinstance(target, SnowflakeTarget):
        return SnowflakeMirror(target)
    raise BadEnvironment(f"there is no adapter for {type(target).__name__}")
