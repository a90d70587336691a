"""A step of the set-up: its commands, the steps that it needs, and the stamp that shows that it is done."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_DOTS = re.compile(r"\.{4,}")


@dataclass(frozen=True)
class Stamp:
    """A file that is written when a step has succeeded. It contains the fingerprint of the step's inputs."""

    file: Path
    made_from: Callable[[], str]
    accepted: tuple[str, ...] = ()
    """Fingerprints of larger inputs that include the step's inputs, and are therefore accepted too."""

    def is_valid(self) -> bool:
        """Return True if the step succeeded with these inputs, or with accepted larger ones."""
        try:
            written = self.file.read_text()
        except OSError:
            return False
        return written in self.accepted or written == self.made_from()

    def write(self) -> None:
        """Write the stamp atomically."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_name(f"{self.file.name}.new")
        new.write_text(self.made_from())
        new.replace(self.file)


@dataclass(frozen=True)
class Step:
    """A step of the set-up: commands that run one after the other when the needed steps are done."""

    name: str
    title: str
    commands: tuple[tuple[str, ...], ...]
    stamp: Stamp
    needs: tuple[str, ...] = ()
    output: Path | None = None
    environment: Callable[[], Mapping[str, str]] = dict
    """A function that returns variables for the commands. It is called when the needed steps are done."""
    unnecessary: Callable[[], bool] = lambda: False
    """A function that returns True if the step has nothing to do on this machine."""
    size: Callable[[int], int | None] = lambda _: None
    """A function that returns the bytes that the step's process has written so far, or None if unknown."""

    def is_done(self) -> bool:
        """Return True if the step is unnecessary, or has succeeded and its output still exists."""
        made = self.stamp.is_valid() and (self.output is None or self.output.exists())
        return made or self.unnecessary()


def fingerprint(*parts: Path | str) -> str:
    """Return a hash of the contents of files and of texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
    return digest.hexdigest()


def steps_to_run(steps: Iterable[Step], goals: Iterable[str]) -> list[Step]:
    """Return the steps that are missing for these goals, each after the steps that it needs."""
    by_name = {step.name: step for step in steps}
    missing: dict[str, Step] = {}

    def add(name: str) -> None:
        step = by_name[name]
        if name in missing or step.is_done():
            return
        for need in step.needs:
            add(need)
        missing[name] = step

    for goal in goals:
        add(goal)
    return list(missing.values())


def bytes_in(*folders: Path) -> int:
    """Return the total size in bytes of all files under these folders."""
    total = 0
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                try:
                    total += (Path(root) / name).lstat().st_size
                except OSError:  # moved or removed in the meantime
                    continue
    return total


def bytes_written_by(process: int) -> int | None:
    """Return the number of bytes that a process has written, or None on other systems than Linux."""
    try:
        counters = Path(f"/proc/{process}/io").read_text()
    except OSError:
        return None
    return int(re.findall(r"^wchar: (\d+)$", counters, re.M)[0])


def log_tail(log: Path, lines: int) -> list[str]:
    """Return the last lines of a log, without empty lines and without a downloader's rows of dots."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 400_000))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    shown = (_DOTS.sub("…", line).rstrip() for line in text.replace("\r", "\n").splitlines())
    return [line for line in shown if line.strip(" …\t")][-lines:]
