"""Error message for a name that several things have. It lists an unambiguous id for each."""

from collections.abc import Sequence

_LISTED = 20


def describe_several(named: str, things: str, each: Sequence[str]) -> str:
    """Return the message that refuses an ambiguous name and lists the things to choose from.

    Args:
        things: noun for the things, in the plural.
        each: one line per thing, newest first. Each begins with an id that no other thing has.
    """
    more = [f"… and {len(each) - _LISTED:,} older ones"] if len(each) > _LISTED else []
    lines = "".join(f"\n  {line}" for line in [*each[:_LISTED], *more])
    return f"{named!r} names {len(each):,} {things}: name one of them by its id. The newest first:{lines}"
