"""Files and folders of runs that only their owner can read, whatever the process's umask is."""

import os
from pathlib import Path
from typing import TextIO


def private_folder(folder: Path) -> Path:
    """Create a folder of mode 0700 and return it. An existing folder gets this mode."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def write_private(file: Path, text: str) -> Path:
    """Write a file of mode 0600 and return it. An existing file gets this mode before anything is written."""
    with open_private(file, os.O_TRUNC) as out:
        out.write(text)
    return file


def open_private(file: Path, how: int = os.O_APPEND) -> TextIO:
    """Open a file of mode 0600 to write text, by default at its end."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", buffering=1)
