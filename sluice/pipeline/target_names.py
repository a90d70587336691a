"""The names of targets, by which pipelines say what is told of their publications."""

import re

_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
MAX_TARGETS = 20
"""So many targets a pipeline may name."""


def target_name(name: str) -> str:
    """Return `name` if it can name a target.

    Raises:
        ValueError: it cannot.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name[:100]!r} is not a name of a target: use letters, digits, '-' and '_', beginning with a letter, "
            "at most 64 characters"
        )
    return name


def target_names(names: list[str]) -> list[str]:
    """Return names of targets, if each can be one and none is there twice.

    Raises:
        ValueError: it is not so.
    """
    for name in names:
        target_name(name)
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0]!r} is named twice")
    if len(names) > MAX_TARGETS:
        raise ValueError(f"{len(names)} targets are too many: the limit is {MAX_TARGETS}")
    return names
