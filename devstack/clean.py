"""The command behind `make clean`: show what set-up and the local stack created, ask, and remove it.

    python3 -m devstack.clean [--yes]

The command removes files in `data` only if set-up wrote them and nobody has changed them since.
Exit codes: 0 if everything shown was removed, or the answer was no; 2 if there is no terminal for the question; 7 if
something could not be removed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devstack.set_up.spark_archive import SparkArchive
from sluice.sizes import format_count, format_size

LISTED = ".set-up.sha256"
"""Name of the file in `data` that lists the files that set-up wrote there, in the form of `sha256sum`."""
_STAMP = "done"
_ROOT = Path(__file__).resolve().parents[1]
_LAKES = ("lake", "s3/store")
_NAMED = 5
OK, WRONG_USE, FAILED = 0, 2, 7


@dataclass(frozen=True)
class Removal:
    """The folders and files that `make clean` removes from a root folder, and the files that stay."""

    folders: list[Path]
    """`.venv` and `.sluice`, if they exist."""
    data: list[Path]
    """The files that set-up wrote under `data`."""
    kept: list[Path]
    """The other files under `data`."""

    @classmethod
    def plan(cls, root: Path) -> "Removal":
        """Plan the removal of the folders and files that exist."""
        folders = [path for name in (".venv", ".sluice") if os.path.lexists(path := root / name)]
        written = _written_by_set_up(root / "data")
        kept = [path for path in _files(root / "data") if path not in written]
        return cls(folders, written, kept)

    def describe(self, root: Path) -> list[str]:
        """Return lines that describe what is removed, and what stays."""
        lines = []
        for folder in self.folders:
            lines.append(f"  {folder.name:8} {_described(folder)}")
            lines += [f"           {line}" for line in _contents(folder)]
        if self.data:
            lines.append(f"  {'data':8} {format_count(len(self.data), 'file')} that set-up wrote")
        if self.kept:
            lines.append(f"What stays: {format_count(len(self.kept), 'file')} that set-up did not write")
            lines += [f"  {path.relative_to(root)}" for path in self.kept[:_NAMED]]
            lines += ["  …"] if len(self.kept) > _NAMED else []
        return lines

    def remove(self, root: Path) -> None:
        """Stop what runs from them, and remove the planned folders and files.

        Raises:
            OSError: something cannot be removed.
        """
        python = root / ".venv" / "bin" / "python"
        if python.exists():
            subprocess.run([str(python), "-m", "devstack", "down"], cwd=root, check=False)
        SparkArchive(root, root / ".sluice").stop()
        unchanged = _written_by_set_up(root / "data")  # a person may have changed files while the command asked
        for path in self.data:
            if path in unchanged:
                path.unlink()
        _remove_empty_folders(root / "data")
        for folder in self.folders:
            folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)


def clean(root: Path, *, yes: bool) -> int:
    """Show the planned removal, ask for confirmation, and remove; return the exit code."""
    removal = Removal.plan(root)
    if not removal.folders and not removal.data:
        print("Nothing to remove.")
        return OK
    print(f"make clean removes from {root}:")
    print("\n".join(removal.describe(root)))
    if not yes and not sys.stdin.isatty():
        print("sluice: nothing was removed. Without a terminal, use `make clean YES=1`.", file=sys.stderr)
        return WRONG_USE
    if not yes and input("Remove this? [y/N] ").strip().lower() not in ("y", "yes"):
        print("Nothing was removed.")
        return OK
    try:
        removal.remove(root)
    except OSError as error:
        print(f"sluice: could not remove everything: {error}. Fix that, and run `make clean` again.", file=sys.stderr)
        return FAILED
    print("Removed.")
    return OK


def _written_by_set_up(data: Path) -> list[Path]:
    """Return the files under `data` that are unchanged since set-up wrote them, and set-up's own two files."""
    if data.is_symlink():
        return []  # set-up makes no link, so the folder belongs to a person
    try:
        listed = [line.split("  ", 1) for line in (data / LISTED).read_text().splitlines() if "  " in line]
    except OSError:
        listed = []
    written = [data / name for digest, name in listed if _is_inside(data, name) and _digest(data / name) == digest]
    own = [path for name in (LISTED, _STAMP) if (path := data / name).is_file() and not path.is_symlink()]
    return [*written, *own]


def _is_inside(data: Path, name: str) -> bool:
    """Return True if no folder of a file's name is a link, which a person made, and none leads out of `data`."""
    return (data / name).parent.resolve() == data.resolve() / Path(name).parent


def _digest(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        return ""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _files(folder: Path) -> list[Path]:
    """Return all files and links below a folder, without following links."""
    return sorted(_walk(folder)) if folder.is_dir() and not folder.is_symlink() else []


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent) / name for name in files)
        yield from (path for name in folders if (path := Path(parent) / name).is_symlink())


def _remove_empty_folders(folder: Path) -> None:
    """Remove empty folders, the deepest first."""
    if folder.is_dir() and not folder.is_symlink():
        for parent, _, _ in os.walk(folder, topdown=False):
            if not any(Path(parent).iterdir()):
                Path(parent).rmdir()


def _described(folder: Path) -> str:
    if folder.is_symlink():
        return f"a link to {folder.resolve()}, which stays"
    what = "Python and its packages" if folder.name == ".venv" else "tools, logs, and the data below"
    return f"{format_size(_size(folder))}: {what}"


def _contents(folder: Path) -> list[str]:
    """Return lines about the lake, the catalog and the histories in a home, which a person would miss."""
    if folder.name != ".sluice" or folder.is_symlink():
        return []
    lines = []
    for lake in (folder / name for name in _LAKES if (folder / name).is_dir()):
        if lake.resolve() != folder.resolve() / lake.relative_to(folder):
            lines.append(f"the lake {lake.relative_to(folder.parent)}: a link to {lake.resolve()}, which stays")
            continue
        tables = sum(1 for parent, _, files in os.walk(lake) if any(each.endswith(".metadata.json") for each in files))
        lines.append(f"the lake {lake.relative_to(folder.parent)}: {format_count(tables, 'table')}, "
                     f"{format_size(_size(lake))}")  # fmt: skip
    if any((folder / name).exists() for name in ("nessie", "iceberg", "s3")):
        lines.append("the catalog: a table whose files are stored elsewhere can no longer be found by its name")
    if (folder / "temporal.db").exists() or (folder / "s3" / "temporal.db").exists():
        lines.append("the history of all runs, and those under way")
    return lines


def _size(folder: Path) -> int:
    """Return the total size in bytes of the files below a folder. A file with several names counts once."""
    seen: dict[tuple[int, int], int] = {}
    for path in _walk(folder):
        try:
            status = path.lstat()
        except OSError:
            continue
        seen[(status.st_dev, status.st_ino)] = status.st_size
    return sum(seen.values())


if __name__ == "__main__":
    given = sys.argv[1:]
    if given not in ([], ["--yes"]):
        print(__doc__, file=sys.stderr)
        sys.exit(WRONG_USE)
    try:
        sys.exit(clean(_ROOT, yes=bool(given)))
    except (KeyboardInterrupt, EOFError):
        print("\nNothing was removed.", file=sys.stderr)
        sys.exit(130)
