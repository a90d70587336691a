"""Read the files of an import: one file with the dbt project around it, or a whole folder."""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from importing.dbt.project import PROJECT_FILES
from importing.imported import SourceText
from importing.project import Files, sort_files
from sluice.errors import InvalidPipeline

_SUFFIXES = (".yml", ".yaml", ".json", ".sql")
_FILLED = frozenset({"target", "dbt_packages", "dbt_modules", "logs", "venv"})
"""Folders that tools fill, skipped in the imported folder and in the folder of a project."""
_INSTALLED = frozenset({"node_modules", "site-packages", "__pycache__"})
"""Folders that tools fill, skipped everywhere."""
_OF_SQL = frozenset({"macros", "tests", "generic"})
"""Folders whose SQL files an import uses; SQL files elsewhere are models."""
_MAX_BYTES = 5 * 2**20
"""Maximum size of a file, in bytes. A larger file is data, not a list of tests."""


def read_files(path: Path) -> Files:
    """Return the files of an import by kind. A dbt file comes with the macros and variables of its project.

    Raises:
        InvalidPipeline: the file or folder cannot be read, or has nothing to import.
    """
    if path.is_dir():
        files = _files_in(path)
        if not any([files.dbt, files.soda, files.suites, files.projects and files.singular]):
            unread = "".join(f"; {file}: {why}" for file, why in files.unread[:3])
            raise InvalidPipeline(
                f"{path} has no dbt property file, no SodaCL and no suite of Great Expectations{unread}"
            )
        return files if files.projects else replace(files, singular=[])
    if path.suffix not in _SUFFIXES[:3]:
        raise InvalidPipeline(f"{path} is neither YAML nor JSON: name a file of tests, or the folder of a project")
    try:
        own = sort_files([SourceText(str(path), _text(path, None))])
    except (OSError, ValueError) as error:
        raise InvalidPipeline(f"{path} cannot be read: {_problem(error)}") from error
    if not any([own.dbt, own.soda, own.suites]):
        raise InvalidPipeline(
            f"{path} is neither a dbt property file (`models:`), nor SodaCL (`checks for`), nor a suite of Great "
            "Expectations (`expectations`)"
        )
    project = _project_of(path) if own.dbt else None
    if project is None:
        return own
    around = _files_in(project, (".sql", *PROJECT_FILES))
    return replace(own, macros=around.macros, projects=around.projects, others=around.others, unread=around.unread)


def _project_of(path: Path) -> Path | None:
    """Return the folder of the dbt project that contains a file, or None."""
    return next(
        (each for each in path.resolve().parents if any((each / name).is_file() for name in PROJECT_FILES)), None
    )


def _files_in(folder: Path, suffixes: tuple[str, ...] = _SUFFIXES) -> Files:
    """Return the files of a folder by kind, and those that cannot be read."""
    texts: list[SourceText] = []
    unread: list[tuple[str, str]] = []
    for path in _paths(folder, unread):
        if not path.name.endswith(suffixes):
            continue
        try:
            texts.append(SourceText(str(path), _text(path, folder.resolve())))
        except (OSError, ValueError) as error:
            if path.suffix != ".sql" or _OF_SQL & {*path.parts}:
                unread.append((str(path), _problem(error)))
    return replace(sort_files(texts), unread=unread)


def _paths(folder: Path, unread: list[tuple[str, str]]) -> Iterator[Path]:
    """Yield the files of a folder, except in folders that tools fill. Note the folders that cannot be read."""

    def note(error: OSError) -> None:
        unread.append((str(error.filename), _problem(error)))

    for root, folders, names in os.walk(folder, onerror=note):
        is_project = Path(root) == folder or not {*PROJECT_FILES}.isdisjoint(names)
        skipped = _INSTALLED | _FILLED if is_project else _INSTALLED
        folders[:] = sorted(name for name in folders if name not in skipped and not name.startswith("."))
        unread += [
            (str(Path(root) / name), "it is a link to a folder") for name in folders if (Path(root) / name).is_symlink()
        ]
        yield from (Path(root) / name for name in sorted(names))


def _text(path: Path, folder: Path | None) -> str:
    """Return the text of a file.

    Args:
        folder: the folder that must contain the file, after links are resolved; None for any.

    Raises:
        OSError, ValueError: the file cannot be read, is not a text file, or is outside of the folder.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")  # opening a pipe would wait for its writer
    if folder is not None and not path.resolve().is_relative_to(folder):
        raise ValueError("it is a link out of the folder")
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    return content.decode("utf-8-sig")


def _problem(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not written in UTF-8"
    return str(getattr(error, "strerror", None) or error)
