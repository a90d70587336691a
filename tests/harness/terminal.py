"""A terminal on standard input, at which a person types."""

import io
import sys
from collections.abc import Callable

import pytest


class Terminal(io.StringIO):
    """Standard input with what a person types. Something may happen before each line is read."""

    def __init__(self, typed: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(typed)
        self._meanwhile = meanwhile

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as in io.StringIO
        self._meanwhile()
        return super().readline(size)


def type_in(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    """Make a stream the standard input of this process: a terminal, or another stream as in a pipe."""
    monkeypatch.setattr(sys, "stdin", stream)
