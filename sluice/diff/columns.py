"""Match the columns of two versions of a table by field id: a renamed column is the same column."""

from collections.abc import Sequence

from sluice.base_model import WireMessage
from sluice.metadata.statistics import SchemaField

PARTITION = "sluice_partition"
"""Name of the column with the partition of each row, in the tables that a diff compares."""


def field_name(id: int) -> str:
    """Return the name of a column with a field id in the tables that a diff compares."""
    return f"f{id}"


class DiffColumn(WireMessage):
    """A column of one version or of both."""

    id: int
    name: str
    """Its name in the answer: the name after the change, if there is one."""
    in_before: bool = True
    in_after: bool = True

    @property
    def sql(self) -> str:
        """Its name in the tables that a diff compares. It needs no quotes."""
        return field_name(self.id)


def match_columns(before: Sequence[SchemaField], after: Sequence[SchemaField]) -> list[DiffColumn]:
    """Return the columns of both versions, in the order of the newer one; dropped columns come last."""
    old, new = {each.id for each in before}, {each.id for each in after}
    columns = [DiffColumn(id=each.id, name=each.name, in_before=each.id in old) for each in after]
    return columns + [DiffColumn(id=each.id, name=each.name, in_after=False) for each in before if each.id not in new]


def with_field_names(fields: Sequence[SchemaField]) -> list[SchemaField]:
    """Return columns under the names that they have in the tables that a diff compares."""
    return [SchemaField(each.id, field_name(each.id), each.type, each.required) for each in fields]
