"""Print the files that a user can wrongly read or change, or cannot read but needs.

The program runs as that user.
"""

import json
import os
import stat
import sys
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path


def problems(readable: list[str], secret: list[str], fixed: list[str], but: list[str]) -> Iterator[str]:
    """Yield the problems for this user.

    Args:
        readable: files that the user must be able to read.
        secret: files that the user must not be able to read.
        fixed: paths that the user must not be able to change, with everything below. Python's packages are added.
        but: folders that are exempt from the check of `fixed`.
    """
    for name in ("pyspark", "temporalio"):
        if not find_spec(name):
            yield f"cannot import {name} by {sys.executable}: install it where all users can read it, or see --python"
    yield from (f"cannot read {file}" for file in readable if not os.access(file, os.R_OK))
    yield from (f"can read {file}: chmod 600 it, or move it" for file in secret if os.access(file, os.R_OK))
    for root in sorted({Path(each).resolve() for each in [*fixed, *sys.path, sys.prefix]}):
        changeable = next((path for path in _with_all_below(root, but) if os.access(path, os.W_OK)), None)
        changeable = changeable or next((each for each in root.parents if _can_rename_in(each)), None)
        if changeable:
            reached = "so what the control worker runs or reads: remove this permission, or move the file"
            yield f"can change {changeable}, and {reached}"


def _with_all_below(root: Path, but: Collection[str]) -> Iterator[Path]:
    yield root
    for parent, folders, files in os.walk(root):
        folders[:] = [name for name in folders if str(Path(parent, name)) not in but]
        yield from (path for name in (*folders, *files) if not (path := Path(parent, name)).is_symlink())


def _can_rename_in(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and not folder.stat().st_mode & stat.S_ISVTX


if __name__ == "__main__":
    print(json.dumps([*problems(**json.loads(sys.argv[1]))]))
