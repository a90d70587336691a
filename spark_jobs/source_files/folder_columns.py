"""Columns that Spark makes from folders named `column=value`."""

from collections.abc import Sequence
from urllib.parse import unquote

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput


def columns_of_folders(spec: IngestSpec) -> dict[str, set[str]]:
    """Return the values of each column that Spark makes from folders."""
    return {name: {unquote(value) for value in values} for name, values in encoded_values(spec).items()}


def check_places(spec: IngestSpec) -> None:
    """Check that all files are in folders of the same columns.

    Raises:
        InvalidInput: a file is in folders of other columns.
    """
    first: dict[tuple[str, ...], str] = {}
    for file in spec.files if spec.base_path else ():
        first.setdefault(tuple(name for name, _ in _folders(spec, file)), file)
    if len(first) > 1:
        (fewer, outside), (more, inside) = sorted(first.items(), key=lambda each: len(each[0]))[:2]
        named = ", ".join(f"{name}=" for name in more if name not in fewer)
        raise InvalidInput(
            f"{outside} does not lie in folders {named} as {inside} does: move it into one, or load it in a run of "
            "its own"
        )


def check_twice(spec: IngestSpec, names: Sequence[str]) -> None:
    """Check that no column is both in the folders and in the files.

    Args:
        names: the columns of the files.

    Raises:
        InvalidInput: a column is in both.
    """
    folders = {name.lower() for name in columns_of_folders(spec)}
    if twice := next((name for name in names if name.lower() in folders), None):
        raise InvalidInput(
            f"the column {twice} is in the folders `{twice}=` and in the files, and one value would be lost: leave it "
            "out of the files, or list them by a pattern: then folders become no columns"
        )


def encoded_values(spec: IngestSpec) -> dict[str, set[str]]:
    """Return the values of each column that Spark makes from folders, as encoded in the paths."""
    columns: dict[str, set[str]] = {}
    for file in spec.files if spec.base_path else ():
        for name, value in _folders(spec, file):
            columns.setdefault(name, set()).add(value)
    return columns


def _folders(spec: IngestSpec, file: str) -> list[tuple[str, str]]:
    """Return the columns that the folders of a file name, each with its value as encoded in the path."""
    base = f"{(spec.base_path or '').rstrip('/')}/"
    parts = [part.partition("=") for part in file.removeprefix(base).split("/")[:-1]]
    return [(unquote(name), value) for name, equals, value in parts if equals]
