"""What a listing of source files gives: each file, how to read it, and what its store says of its content."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluice.errors import InputChanged, InputIncomplete, InvalidInput

CHUNK = 1024 * 1024
"""How many bytes are read at once."""


@dataclass(frozen=True)
class ListedFile:
    """One file of a source, before it is identified."""

    path: str
    """As Spark reads it."""
    size: int
    read: Callable[[], Iterator[bytes]]
    """Reads the whole content, in pieces. It fails with `InvalidInput` if the file changes meanwhile."""
    read_tail: Callable[[int], bytes]
    """Reads the last bytes, as many as are asked for: at most `size`."""
    state: Callable[[], tuple[object, ...]]
    """Reads what the store or file system says of it now: size, times, ETag. Two equal states prove nothing, but two
    different ones show that somebody touched it."""
    store_identity: str = ""
    """The identity that the store vouches for; empty where the content has to be read."""


def unreadable(path: str, why: object) -> InvalidInput:
    """Return the error for a file that is there and cannot be read."""
    return InvalidInput(f"{path} cannot be read: {why}")


def vanished(path: str) -> InputChanged:
    """Return the error for a file that was listed and is not there any more."""
    return InputChanged(f"{path} was removed or renamed while the run read it: start the run again")


def changed(path: str, what: str = "changed") -> InputChanged:
    """Return the error for a file that does not stay as it is."""
    return InputChanged(f"{path} {what} while the run read it: start the run again when the file is complete")


def empty(path: str) -> InputIncomplete:
    """Return the error for a file of 0 bytes."""
    return InputIncomplete(f"{path} is empty (0 bytes): remove it, or leave it out of the source")
