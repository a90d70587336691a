"""Names of time zones in pipelines."""

from collections.abc import Collection
from functools import cache
from zoneinfo import available_timezones

from sluice.identifiers import suggestion


@cache
def known_zones() -> frozenset[str]:
    """Return the names of the IANA database."""
    return frozenset(available_timezones())


def unknown_zone(name: str, zones: Collection[str], other: str) -> str:
    """Describe a name that is not one of some zones, and what to write instead.

    Args:
        other: what is valid besides the names of the IANA database.
    """
    return (
        f"{name!r} is not a valid time zone{suggestion(name, zones)}: write a name of the IANA database, such as "
        f"Europe/Berlin, or {other}"
    )
