"""Symbolic links in a landing zone: those that lead out of it are not followed."""

import os
from pathlib import Path

from lakehouse.source_files.paths import absolute_path, fixed_folder, without_scheme


class LinkGuard:
    """Tells which paths of a local landing zone a symbolic link leads out of it."""

    def __init__(self, path: str, *, follows: bool) -> None:
        """Guard the landing zone of a folder or pattern; `follows` allows every link."""
        self._follows = follows
        literal = str(absolute_path(without_scheme(path)))
        self._root = os.path.realpath(literal if Path(literal).exists() else fixed_folder(literal))

    def problem(self, path: str) -> str:
        """Return why a path is not followed; empty for one that is in the landing zone."""
        real = os.path.realpath(path)
        if self._follows or real == self._root or real.startswith(f"{self._root.rstrip('/')}/"):
            return ""
        return (
            f"a symbolic link leads from it out of the landing zone, to {real}: put the file itself here, or state "
            "`follow_links: true` in the `arrival`"
        )


def resolved_suffix(path: str, real: str) -> str:
    """Return what the state of a file says of its resolved path; empty where no link leads to it."""
    return "" if real == path else f"|{real}"
