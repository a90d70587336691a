"""Result of listing source files: each file, functions to read it, and the identity that its store vouches for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sluice.errors import InputChanged, InputIncomplete, InvalidInput

CHUNK = 1024 * 1024
"""Number of bytes read at once."""
_BY_ITSELF = "A landing zone tries again by itself, a few times"


@dataclass(frozen=True)
class ListedFile:
    """One file of a source, before it is identified."""

    path: str
    """Path as Spark reads it."""
    size: int
    read: Callable[[], Iterator[bytes]]
    """Function that reads the whole content in pieces. It fails with `InvalidInput` if the file changes meanwhile."""
    read_tail: Callable[[int], bytes]
    """Function that reads the given number of bytes from the end: at most `size`."""
    state: Callable[[], tuple[object, ...]]
    """Function that reads the present state from the store or file system: size, times, ETag.

    Two equal states prove nothing, but two different ones show that the file was touched.
    """
    store_identity: str = ""
    """Identity that the store vouches for; empty if the content must be read."""


def unreadable(path: str, why: object) -> InvalidInput:
    """Return the error for a file that exists but cannot be read."""
    return InvalidInput(f"{path} cannot be read: {why}")


def vanished(path: str) -> InputChanged:
    """Return the error for a file that was listed but no longer exists."""
    return InputChanged(f"{path} was removed or renamed while the run read it: start the run again. {_BY_ITSELF}")


def changed(path: str, what: str = "changed") -> InputChanged:
    """Return the error for a file that changed."""
    change = f"{path} {what}"
    remedy = f"start the run again when the file is complete. {_BY_ITSELF}"
    return InputChanged(f"{change} while the run read it: {remedy}", change)


def changed_since_start(paths: Sequence[str]) -> InputChanged:
    """Return the error for a source that lists other files, or other content, than at the start of the run."""
    return InputChanged(
        f"the files at {', '.join(paths)} changed since the run was started: start it again. {_BY_ITSELF}"
    )


def empty(path: str) -> InputIncomplete:
    """Return the error for a file of 0 bytes."""
    return InputIncomplete(f"{path} is empty (0 bytes): remove it, or leave it out of the source")
