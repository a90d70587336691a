"""The refusal of a name that several things have, with what names each of them alone."""

from collections.abc import Sequence

_LISTED = 20


def describe_several(named: str, things: str, each: Sequence[str]) -> str:
    """Return why a name is refused that several things have: a list of them, to copy from.

    Args:
        things: what they are, in the plural.
        each: a line for each, the newest first, which begins with what names it alone.
    """
    more = [f"… and {len(each) - _LISTED:,} older ones"] if len(each) > _LISTED else []
    lines = "".join(f"\n  {line}" for line in [*each[:_LISTED], *more])
    return f"{named!r} names {len(each):,} {things}: name one of them by its id. The newest first:{lines}"
