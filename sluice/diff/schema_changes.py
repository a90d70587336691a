"""Compare the columns of two versions of a table by field id."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluice.contracts.table_diffs import SchemaChange


@dataclass(frozen=True)
class Column:
    """A column of a table, at any level of nesting."""

    id: int
    path: tuple[str, ...]
    """Its name, after the names of the columns that contain it."""
    type: str
    """Its type; for a nested column only its kind, such as `struct`."""
    required: bool

    @property
    def name(self) -> str:
        """Its full path for people."""
        return ".".join(self.path)


def schema_changes(before: Sequence[Column], after: Sequence[Column]) -> list[SchemaChange]:
    """Return the changes of columns, in the order of the table; dropped columns come last.

    The columns inside an added or dropped column are not listed.
    """
    old, new = {each.id: each for each in before}, {each.id: each for each in after}
    added = [each for each in after if each.id not in old]
    dropped = [each for each in before if each.id not in new]
    changes = [
        SchemaChange(field_id=each.id, change="added", column=each.name, after=_described(each))
        for each in _outermost(added)
    ]
    for column in after:
        if column.id in old:
            changes += _changes(old[column.id], column)
    changes += [
        SchemaChange(field_id=each.id, change="dropped", column=each.name, before=_described(each))
        for each in _outermost(dropped)
    ]
    return changes


def _changes(old: Column, new: Column) -> Iterator[SchemaChange]:
    if old.path[-1] != new.path[-1]:
        yield SchemaChange(field_id=new.id, change="renamed", column=new.name, before=old.name, after=new.name)
    if old.type != new.type:
        yield SchemaChange(field_id=new.id, change="type changed", column=new.name, before=old.type, after=new.type)
    if old.required != new.required:
        states = {"before": _nullability(old), "after": _nullability(new)}
        yield SchemaChange(field_id=new.id, change="nullability changed", column=new.name, **states)


def _outermost(columns: Sequence[Column]) -> list[Column]:
    paths = {each.path for each in columns}
    return [each for each in columns if not any(each.path[:end] in paths for end in range(1, len(each.path)))]


def _described(column: Column) -> str:
    return f"{column.type} required" if column.required else column.type


def _nullability(column: Column) -> str:
    return "required" if column.required else "optional"
