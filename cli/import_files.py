"""Reading the files of an import: one file with the dbt project around it, or a whole folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from sluice.errors import InvalidPipeline
from sluice.importing.imported import SourceText
from sluice.importing.project import Files, sort_files

_SUFFIXES = (".yml", ".yaml", ".json", ".sql")
_SKIPPED = frozenset(
    {"target", "dbt_packages", "dbt_modules", "logs", "node_modules", "venv", "site-packages", "__pycache__"}
)
"""Folders that tools fill themselves."""
_MAX_BYTES = 5 * 2**20
"""A larger file is data, and no list of tests."""
_PROJECT = ("dbt_project.yml", "dbt_project.yaml")


def read_files(path: Path) -> Files:
    """Return the files of an import by what they are: a file's macros and variables are those of its dbt project.

    Raises:
        InvalidPipeline: it cannot be read, or there is nothing to import.
    """
    if path.is_dir():
        files = sort_files([*_texts(path)])
        if not any([files.dbt, files.soda, files.suites]):
            raise InvalidPipeline(f"{path} has no dbt property file, no SodaCL and no suite of Great Expectations")
        return files if files.projects else Files(**{**vars(files), "singular": []})
    if path.suffix not in _SUFFIXES[:3]:
        raise InvalidPipeline(f"{path} is no YAML and no JSON: name a file of tests, or the folder of a project")
    try:
        own = sort_files([SourceText(str(path), path.read_text(encoding="utf-8"))])
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPipeline(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not any([own.dbt, own.soda, own.suites]):
        raise InvalidPipeline(
            f"{path} is neither a dbt property file (`models:`), nor SodaCL (`checks for`), nor a suite of Great "
            "Expectations (`expectations`)"
        )
    project = _project_of(path) if own.dbt else None
    if project is None:
        return own
    around = sort_files([*_texts(project, (".sql", *_PROJECT))])
    return Files(dbt=own.dbt, macros=around.macros, projects=around.projects)


def _project_of(path: Path) -> Path | None:
    """Return the folder of the dbt project that a file is part of."""
    return next((each for each in path.resolve().parents if any((each / name).is_file() for name in _PROJECT)), None)


def _texts(folder: Path, suffixes: tuple[str, ...] = _SUFFIXES) -> Iterator[SourceText]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(names):
            path = Path(root) / name
            if not name.endswith(suffixes) or path.stat().st_size > _MAX_BYTES:
                continue
            try:
                yield SourceText(str(path), path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError):
                continue
