"""What Iceberg's metadata says of a table before and after a run, read without a catalogue and a JVM.

Source of the rules: the Iceberg table specification, sections "Snapshots", "Manifests" and "Column metrics".
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import BooleanExpression, IsNull, Reference
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import DateType, NestedField, PrimitiveType
from pyiceberg.utils.datetime import days_to_date

from sluice.certificate import ATTEMPT_MARK, RUN_MARK
from sluice.facts import ColumnFacts, FileFacts, TableFacts
from sluice.orders import TableChange
from sluice.verdicts import SAMPLE_ROWS

_SAMPLE_COLUMNS = 12
_BOUNDED_TYPES = ("int", "long", "float", "double", "date")


@dataclass(frozen=True)
class TableState:
    """One table as a run left it on its branch, beside what it was before."""

    table: StaticTable
    before: StaticTable | None

    @classmethod
    def load(cls, after: str, before: str | None, properties: Mapping[str, str]) -> "TableState":
        """Load a table by the places of its metadata files after and before the run."""
        loaded = [StaticTable.from_metadata(place, dict(properties)) if place else None for place in (after, before)]
        assert loaded[0] is not None
        return cls(loaded[0], loaded[1])

    @cached_property
    def types(self) -> dict[str, str]:
        """The Iceberg type of each column, in order."""
        return {field.name: str(field.field_type) for field in self.table.schema().fields}

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """The snapshots that the run made, the newest first."""
        known = {snapshot.snapshot_id for snapshot in self.before.snapshots()} if self.before else set()
        made = []
        current = self.table.current_snapshot()
        while current and current.snapshot_id not in known:
            made.append(current)
            parent = current.parent_snapshot_id
            current = self.table.snapshot_by_id(parent) if parent is not None else None
        return made

    def unmarked(self, run_id: str, attempt: int) -> list[int]:
        """Return the ids of snapshots of the run's branch that this attempt did not make."""
        wanted = (run_id, str(attempt))
        return [
            each.snapshot_id for each in self.snapshots if (_said(each, RUN_MARK), _said(each, ATTEMPT_MARK)) != wanted
        ]

    def change(self) -> TableChange:
        """Say what the run did to the table."""
        operations = dict.fromkeys(each.summary.operation.value for each in reversed(self.snapshots) if each.summary)
        created = self.before is None
        return TableChange(
            operation="+".join(operations) or ("create" if created else "alter"),
            added_rows=self._total("added-records"),
            deleted_rows=self._total("deleted-records") + self._total("added-position-deletes"),
            added_files=self._total("added-data-files"),
            total_rows=None if self.row_deletes else self._live_rows(),
            created=created,
        )

    @cached_property
    def row_deletes(self) -> bool:
        """Whether delete files apply to the table's rows."""
        return any(
            manifest.content == ManifestContent.DELETES
            and (manifest.added_files_count or 0) + (manifest.existing_files_count or 0) > 0
            for manifest in self._manifests()
        )

    def appended_only(self) -> bool:
        """Whether every snapshot of the run is an append, so that its rows can be read incrementally."""
        return bool(self.snapshots) and all(
            each.summary is not None and each.summary.operation.value == "append" for each in self.snapshots
        )

    def snapshot_range(self) -> tuple[int | None, int | None]:
        """Return the ids of the snapshot before the run and of the last one, where they are there."""
        last = self.table.current_snapshot()
        oldest = self.snapshots[-1].parent_snapshot_id if self.snapshots else None
        return oldest, last.snapshot_id if last else None

    def added_paths(self) -> list[str]:
        """Return the live data files that the run added."""
        return [entry.data_file.file_path for entry in self._entries(added_only=True)]

    def facts(self, columns: Collection[str], whole_table: bool) -> TableFacts:
        """Gather what the metadata says of these columns, of every file if `whole_table`."""
        fields = [self.table.schema().find_field(name) for name in columns if name in self.types]
        added = [_file_facts(entry.data_file, fields) for entry in self._entries(added_only=True)]
        live = [_file_facts(e.data_file, fields) for e in self._entries(False)] if whole_table else []
        return TableFacts(types=self.types, added=added, live=live, row_deletes=self.row_deletes)

    def rows_with_null(self, column: str, added_only: bool) -> list[dict[str, Any]]:
        """Read a few rows that have a null in the column."""
        others = [name for name in self.types if name != column]
        fields = (column, *others[: _SAMPLE_COLUMNS - 1])
        is_null: BooleanExpression = cast(Any, IsNull)(Reference(column))  # its __new__ hides its __init__
        scan = self.table.scan(row_filter=is_null, selected_fields=fields)
        paths = set(self.added_paths()) if added_only else None
        tasks = [task for task in scan.plan_files() if paths is None or task.file.file_path in paths]
        reader = ArrowScan(self.table.metadata, self.table.io, scan.projection(), is_null, limit=SAMPLE_ROWS)
        rows = reader.to_table(tasks).to_pylist()
        return [{name: _plain(row.get(name)) for name in fields} for row in rows]

    def _manifests(self) -> list[Any]:
        snapshot = self.table.current_snapshot()
        return snapshot.manifests(self.table.io) if snapshot else []

    def _entries(self, added_only: bool) -> Iterator[ManifestEntry]:
        ours = {snapshot.snapshot_id for snapshot in self.snapshots}
        for manifest in self._manifests():
            if manifest.content != ManifestContent.DATA:
                continue
            if added_only and manifest.added_snapshot_id not in ours:
                continue  # a manifest from before the run lists no file of the run
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True):
                if not added_only or entry.snapshot_id in ours:
                    yield entry

    def _total(self, key: str) -> int:
        return sum(int(_said(each, key) or 0) for each in self.snapshots)

    def _live_rows(self) -> int:
        snapshot = self.table.current_snapshot()
        stated = _said(snapshot, "total-records") if snapshot else "0"
        if stated is not None:
            return int(stated)
        return sum(entry.data_file.record_count for entry in self._entries(added_only=False))


def _said(snapshot: Snapshot, key: str) -> str | None:
    return snapshot.summary.additional_properties.get(key) if snapshot.summary else None


def _file_facts(file: DataFile, fields: list[NestedField]) -> FileFacts:
    return FileFacts(rows=file.record_count, columns={field.name: _column_facts(file, field) for field in fields})


def _column_facts(file: DataFile, field: NestedField) -> ColumnFacts:
    number = field.field_id
    return ColumnFacts(
        nulls=(file.null_value_counts or {}).get(number),
        nans=(file.nan_value_counts or {}).get(number),
        lower=_bound((file.lower_bounds or {}).get(number), field),
        upper=_bound((file.upper_bounds or {}).get(number), field),
    )


def _bound(raw: bytes | None, field: NestedField) -> Any:
    """Read a bound, or None: a column promoted since has bounds of its old width, which prove nothing here."""
    kind = field.field_type
    if raw is None or not isinstance(kind, PrimitiveType) or str(kind) not in _BOUNDED_TYPES:
        return None
    try:
        value: Any = from_bytes(kind, raw)
        return days_to_date(value).isoformat() if isinstance(kind, DateType) else value
    except Exception:  # whatever a strange bound raises, it means: nothing is proven
        return None


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
