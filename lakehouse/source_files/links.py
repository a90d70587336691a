"""Symbolic links in a landing zone: links out of the zone are not followed."""

import os
from pathlib import Path

from lakehouse.source_files.paths import absolute_path, fixed_folder, without_scheme


class LinkGuard:
    """Detector of paths in a local landing zone that a symbolic link leads out of it."""

    def __init__(self, path: str, *, follows: bool) -> None:
        """Guard the landing zone of a folder or pattern. `follows` allows every link."""
        self._follows = follows
        literal = str(absolute_path(without_scheme(path)))
        self._root = os.path.realpath(literal if Path(literal).exists() else fixed_folder(literal))

    def problem(self, path: str, real: str = "") -> str:
        """Return why a path is not followed; empty for a path inside the landing zone.

        Args:
            real: the path without symbolic links, if the caller has just resolved it.
        """
        real = real or os.path.realpath(path)
        if self._follows or real == self._root or real.startswith(f"{self._root.rstrip('/')}/"):
            return ""
        return (
            f"a symbolic link in its path leads out of the landing zone, to {real}: put the file itself here, or set "
            "`follow_links: true` in the `arrival`"
        )


def resolved_suffix(path: str, real: str) -> str:
    """Return the part of a file's state with its resolved path; empty if no link leads to it."""
    return "" if real == path else f"|{real}"
