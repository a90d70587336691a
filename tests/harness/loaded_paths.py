"""The paths of files in the models of main, with the content that each had when a run selected it."""

from collections.abc import Iterable
from typing import TypeVar

_Content = TypeVar("_Content")
Paths = frozenset[tuple[str, _Content]]
"""Paths with their content."""


def paths_of(contents: Iterable[_Content], files: Iterable[tuple[str, _Content]]) -> "Paths[_Content]":
    """Return the files that a run loads: of files with the same content, the first."""
    names = {content: path for path, content in sorted(files, key=lambda file: file[0], reverse=True)}
    return frozenset((names[content], content) for content in contents)


def has_other_content(paths: "Paths[_Content]", loaded: Iterable[tuple[str, _Content]]) -> bool:
    """Return True if other content was loaded from one of these paths."""
    wanted = dict(paths)
    return any(path in wanted and wanted[path] != content for path, content in loaded)
