"""What Iceberg's metadata says of a table: exact where it says anything, silent where it does not."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from sluice.model import Model


class ColumnFacts(Model):
    """Statistics of one column in one data file. None means: not recorded, so nothing is proven."""

    nulls: int | None = None
    nans: int | None = None
    lower: Any = None
    upper: Any = None


class FileFacts(Model):
    """One data file: its rows and what is recorded of its columns, by name."""

    rows: int
    columns: dict[str, ColumnFacts] = Field(default_factory=dict)


class TableFacts(Model):
    """A table at one hash of a branch, compared with the hash that the branch began from."""

    types: dict[str, str]
    """The Iceberg type of each column, in the table's order."""
    added: list[FileFacts]
    """The files that this run's snapshots added and that are live."""
    live: list[FileFacts] = Field(default_factory=list)
    """Every live file; empty unless a check asks for the whole table."""
    row_deletes: bool = False
    """Whether row-level deletes apply, which make every count of a file an upper bound."""

    def files(self, scope: Literal["added", "table"]) -> Sequence[FileFacts]:
        """Return the files that a check of this scope is about."""
        return self.added if scope == "added" else self.live

    def rows(self, scope: Literal["added", "table"]) -> int | None:
        """Return the exact number of rows, or None where row-level deletes hide it."""
        if self.row_deletes:
            return None
        return sum(file.rows for file in self.files(scope))

    def nulls(self, column: str, scope: Literal["added", "table"]) -> int | None:
        """Return the number of nulls, an upper bound under row-level deletes, or None if not recorded."""
        total = 0
        for file in self.files(scope):
            if file.rows == 0:
                continue
            facts = file.columns.get(column)
            if facts is None or facts.nulls is None:
                return None
            total += facts.nulls
        return total
