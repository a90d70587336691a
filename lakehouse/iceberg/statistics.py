"""Collect table statistics from Iceberg's metadata: manifests, column metrics and snapshot summaries.

Source of the rules: the Iceberg table specification, sections "Manifests", "Column metrics" (field ids 108 to
137 of `data_file`), "Scan planning" (which delete files apply to which data files) and appendix D (bounds).
"""

import math
import struct
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, NestedField

from lakehouse.iceberg.delete_files import DeleteFiles
from lakehouse.iceberg.table_state import TableState
from sluice.metadata.statistics import (
    ChangeStatistics,
    ColumnStatistics,
    FileStatistics,
    SchemaField,
    StatisticsNeed,
    TableStatistics,
)
from sluice.sql.values import kind_of

_EPOCH = datetime(1970, 1, 1)
_FLOAT_BYTES = 4


def collect_statistics(
    state: TableState,
    columns: Collection[str],
    needs: Collection[StatisticsNeed],
    *,
    tables: Collection[str] = (),
    referenced_rows: Mapping[str, int | None] | None = None,
    now: datetime | None = None,
) -> TableStatistics:
    """Collect the statistics of a table for these columns, and the other statistics that checks need.

    Args:
        tables: the names of all tables that the branch changed.
        referenced_rows: the row counts of the other tables that checks reference.
    """
    fields = [state.table.schema().find_field(name) for name in columns if name in state.types]
    deletes = DeleteFiles.of(state)
    all_files = StatisticsNeed.LIVE_FILES in needs
    added_paths = {entry.data_file.file_path for entry in state.live.added}
    entries = state.entries(added_only=not all_files)
    live = [_statistics_of_file(state, entry, fields, deletes) for entry in entries]
    added = [file for file in live if file.path in added_paths]
    return TableStatistics(
        types=state.types,
        added=added,
        live=live if all_files else (),
        change=_change(state, needs, tables) if StatisticsNeed.CHANGE in needs else ChangeStatistics(),
        referenced_rows=referenced_rows or {},
        now=now or datetime.now(timezone.utc),
    )


def file_statistics(state: TableState, columns: Collection[str]) -> list[FileStatistics]:
    """Return every live file of a table with the statistics of these columns."""
    fields = [state.table.schema().find_field(name) for name in columns if name in state.types]
    deletes = DeleteFiles.of(state)
    return [_statistics_of_file(state, entry, fields, deletes) for entry in state.entries(added_only=False)]


def deletes_may_apply(number: int, latest: tuple[int, int]) -> bool:
    """Return True if deletes may apply to a data file of a sequence number.

    Position deletes apply also to files of their own commit, equality deletes only to earlier ones ("Scan Planning").
    """
    position, equality = latest
    return number <= position or number < equality


def _statistics_of_file(
    state: TableState, entry: ManifestEntry, fields: Iterable[NestedField], deletes: DeleteFiles
) -> FileStatistics:
    file = entry.data_file
    number = entry.sequence_number if entry.sequence_number is not None else 0
    may_apply = deletes_may_apply(number, deletes.latest)
    delete_files, problem = deletes.of_file(number, file) if may_apply else ([], "")
    return FileStatistics(
        rows=file.record_count,
        columns={field.name: _column_statistics(file, field) for field in fields},
        path=file.file_path,
        bytes=file.file_size_in_bytes,
        form=str(getattr(file.file_format, "name", file.file_format)).upper(),
        deletes=may_apply,
        delete_files=delete_files,
        deletes_problem=problem,
        may_lack_columns=state.may_lack_columns(file),
    )


def _column_statistics(file: DataFile, field: NestedField) -> ColumnStatistics:
    number = field.field_id
    return ColumnStatistics(
        nulls=(file.null_value_counts or {}).get(number),
        nans=(file.nan_value_counts or {}).get(number),
        lower=bound((file.lower_bounds or {}).get(number), str(field.field_type), field),
        upper=bound((file.upper_bounds or {}).get(number), str(field.field_type), field),
        size=(file.column_sizes or {}).get(number),
    )


def bound(raw: bytes | None, kind: str, field: NestedField | None = None) -> Any:
    """Read a bound with the column's present type. Return None if it proves nothing.

    A file from before a type promotion has bounds of the old width (appendix D, schema evolution): whole numbers and
    floats of 4 bytes are read as such. A truncated string, with the upper bound rounded up, is still a bound. A NaN is
    not.
    """
    if raw is None:
        return None
    try:
        return _READERS[kind_of(kind)](bytes(raw), field)
    except Exception:  # an unreadable bound proves nothing, whatever the error
        return None


def _whole(raw: bytes, _: object) -> int:
    if len(raw) not in (4, 8):
        raise ValueError
    return int.from_bytes(raw, "little", signed=True)


def _float(raw: bytes, _: object) -> float:
    (value,) = struct.unpack("<f" if len(raw) == _FLOAT_BYTES else "<d", raw)
    if math.isnan(value):
        raise ValueError
    return float(value)


def _decimal(raw: bytes, field: NestedField | None) -> Decimal:
    assert field is not None and isinstance(field.field_type, DecimalType)
    return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-field.field_type.scale)


def _date(raw: bytes, _: object) -> date:
    return date(1970, 1, 1) + timedelta(days=_exactly(raw, 4))


def _time(raw: bytes, _: object) -> datetime:
    return _EPOCH + timedelta(microseconds=_exactly(raw, 8))


def _exactly(raw: bytes, width: int) -> int:
    if len(raw) != width:
        raise ValueError
    return int.from_bytes(raw, "little", signed=True)


_READERS: dict[str, Any] = {
    "int": _whole,
    "long": _whole,
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _time,
    "timestamptz": lambda raw, field: _time(raw, field).replace(tzinfo=timezone.utc),
    "string": lambda raw, _: raw.decode("utf-8"),
    "boolean": lambda raw, _: raw != b"\x00",
}


def _change(state: TableState, needs: Collection[StatisticsNeed], tables: Collection[str]) -> ChangeStatistics:
    change, before = state.change(), state.before
    return ChangeStatistics(
        operations=change.operation.split("+"),
        added_rows=change.added_rows,
        deleted_rows=change.deleted_rows,
        deletes_by_value=change.deletes_by_value,
        added_files=change.added_files,
        added_bytes=change.added_bytes,
        created=change.created,
        partitions=sorted(_partitions(state)) if StatisticsNeed.PARTITIONS in needs else (),
        partition_spec=(_spec(before), _spec(state.table)),
        sort_order=(_order(before), _order(state.table)),
        fields_before=schema_fields(before.schema()) if before else (),
        fields_after=schema_fields(state.table.schema()),
        tables=sorted(tables),
        volumes=state.volumes() if StatisticsNeed.VOLUMES in needs else (),
    )


def _partitions(state: TableState) -> set[str]:
    """Return the partition of every file that the run added, removed or deleted rows from."""
    specs, schema, live = state.table.specs(), state.table.schema(), state.live
    entries = (*live.added, *live.removed, *live.added_deletes, *live.removed_deletes)
    files = [entry.data_file for entry in entries]
    return {specs[file.spec_id].partition_to_path(file.partition, schema) or "the whole table" for file in files}


def _spec(table: Any) -> str:
    return ", ".join(str(field).split(": ", 1)[-1] for field in table.spec().fields) if table else ""


def _order(table: Any) -> str:
    return ", ".join(map(str, table.sort_order().fields)) if table else ""


def schema_fields(schema: Schema) -> list[SchemaField]:
    """Return the columns of a schema with their field ids."""
    return [SchemaField(each.field_id, each.name, str(each.field_type), each.required) for each in schema.fields]
