"""The types of columns that no table and no schema states."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from sluice.base_model import Model

MOST_LISTED = 50
"""Maximum number of columns in a result: those with a deciding value first."""
LONGEST = 40
"""Maximum number of characters of a value, and of a type with its nested fields."""


def shortened(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


class GuessedColumn(Model):
    """A column of files, and the type that its values have."""

    name: str
    type: str
    """The type as SQL writes it; empty where no value gives the column a type yet."""
    value: str = ""
    """The first value that makes the column text; empty where none does, or where values are not shown."""
    where: str = ""
    """The file of this value, and its line where that is known."""


class GuessedTypes(Model):
    """The guessed types of the columns of files."""

    columns: list[GuessedColumn] = Field(default_factory=list)
    total: int = 0
    """Number of columns with a guessed type. `columns` may be fewer."""


NO_TYPES = GuessedTypes()


@dataclass(frozen=True)
class TypePreview:
    """The types that the first rows of files give to their columns."""

    columns: Sequence[GuessedColumn] = ()
    hints: Sequence[str] = ()
    """Columns that a few values make text."""
    is_whole: bool = True
    """True if all rows of the files were read."""


def listed_types(columns: Sequence[GuessedColumn], *, show_values: bool) -> GuessedTypes:
    """Return guessed types for a result of limited size."""
    first = sorted(columns, key=lambda each: (not each.where, bool(each.type)))[:MOST_LISTED]
    names = {each.name for each in first}
    shown = [
        GuessedColumn(
            name=each.name,
            type=shortened(each.type),
            value=shortened(each.value) if show_values else "",
            where=each.where,
        )
        for each in columns
        if each.name in names
    ]
    return GuessedTypes(columns=shown, total=len(columns))
