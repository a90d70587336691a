"""Types of columns that no table and no schema states."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from sluice.base_model import WireMessage

MOST_LISTED = 50
"""Maximum number of columns in a result. Columns with a deciding value come first."""
LONGEST = 40
"""Maximum number of characters of a value, and of a type with its nested fields."""


def shortened(text: str) -> str:
    """Return a text, cut to `LONGEST` characters."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


class GuessedColumn(WireMessage):
    """A column of files, and the type of its values."""

    name: str
    type: str
    """Type in SQL notation; empty if no value gives the column a type yet."""
    value: str = ""
    """First value that makes the column text; empty if there is none, or if values are not shown."""
    where: str = ""
    """File of this value, with the line if it is known."""
    as_text: list[str] = Field(default_factory=list)
    """Nested fields that are text because no record has a value in them."""


class GuessedTypes(WireMessage):
    """Guessed types of the columns of files."""

    columns: list[GuessedColumn] = Field(default_factory=list)
    total: int = 0
    """Number of columns with a guessed type. `columns` may have fewer."""


NO_TYPES = GuessedTypes()


@dataclass(frozen=True)
class TypePreview:
    """Types that the first rows of files give to their columns."""

    columns: Sequence[GuessedColumn] = ()
    hints: Sequence[str] = ()
    """Hints about columns that are text because of a few values."""
    is_whole: bool = True
    """True if all rows of the files were read."""


def listed_types(columns: Sequence[GuessedColumn], *, show_values: bool) -> GuessedTypes:
    """Return guessed types, at most `MOST_LISTED` of them, for a result."""
    first = sorted(columns, key=lambda each: (not (each.where or each.as_text), bool(each.type)))[:MOST_LISTED]
    names = {each.name for each in first}
    shown = [
        GuessedColumn(
            name=each.name,
            type=shortened(each.type),
            value=shortened(each.value) if show_values else "",
            where=each.where,
            as_text=each.as_text[:MOST_LISTED],
        )
        for each in columns
        if each.name in names
    ]
    return GuessedTypes(columns=shown, total=len(columns))
