"""Names of registration targets, which pipelines list in `after_publish`."""

import re

_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
MAX_TARGETS = 20
"""Maximum number of targets that a pipeline may name."""


def target_name(name: str) -> str:
    """Return `name` if it is a valid name of a target.

    Raises:
        ValueError: the name is not valid.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name[:100]!r} is not a valid name of a target: use letters, digits, '-' and '_', beginning with a "
            "letter, at most 64 characters"
        )
    return name


def target_names(names: list[str]) -> list[str]:
    """Return names of targets if each is valid and none occurs twice.

    Raises:
        ValueError: a name is not valid or occurs twice, or there are too many.
    """
    for name in names:
        target_name(name)
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0]!r} is named twice")
    if len(names) > MAX_TARGETS:
        raise ValueError(f"{len(names)} targets are too many: the limit is {MAX_TARGETS}")
    return names
