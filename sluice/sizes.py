"""Format sizes, counts and lists for people."""

from collections.abc import Sequence


def format_size(number: float) -> str:
    """Format a number of bytes for a person: `1.5 KiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError(number)


def format_count(number: int, thing: str) -> str:
    """Format a count with its noun: `1 check`, `1,200 checks`."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def format_list(names: Sequence[str], most: int) -> str:
    """Format a list of names, and count those above a maximum: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
