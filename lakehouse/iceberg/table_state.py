"""An Iceberg table before and after a run, read from its metadata without a JVM.

Source of the rules: the Iceberg table specification, sections "Snapshots", "Manifests" and "Column metrics".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile, clear_manifest_cache
from pyiceberg.table import StaticTable
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from lakehouse.catalog import TableVersion
from lakehouse.iceberg.live_files import LiveFileDiff, live_file_diff
from sluice.contracts.table_changes import TableChange
from sluice.publishing.commit_properties import ATTEMPT, RUN_ID
from sluice.publishing.small_files import Partition, describe_small_files

Maker = tuple[str, Iterable[int]]
"""Id of a run, and those of its attempts that may have made a snapshot."""
_DISTRIBUTION = "write.distribution-mode"


@dataclass(frozen=True)
class TableState:
    """One table after a run on its branch, with its state before the run."""

    table: StaticTable
    before: StaticTable | None

    @classmethod
    def load(cls, after: TableVersion, before: TableVersion | None, properties: Mapping[str, str]) -> "TableState":
        """Load a table at its versions after and before the run."""
        return cls(load_table(after, properties), load_table(before, properties) if before else None)

    @cached_property
    def types(self) -> dict[str, str]:
        """Iceberg type of each column, in order."""
        return {field.name: str(field.field_type) for field in self.table.schema().fields}

    @cached_property
    def plain_types(self) -> dict[str, str]:
        """Iceberg type of each column, without the ids, the comments and the nullability of its fields."""
        return {field.name: _plain_type(field.field_type) for field in self.table.schema().fields}

    @property
    def has_column_defaults(self) -> bool:
        """True if a column has a default for rows of older files."""
        return any(field.initial_default is not None for field in self.table.schema().fields)

    def may_lack_columns(self, file: DataFile) -> bool:
        """Return True if a data file may lack a column whose value its partition has, as in files written by Hive.

        Iceberg then reads the value from metadata. For a column in the file, metadata records its size or counts.
        """
        recorded = {*(file.column_sizes or ()), *(file.value_counts or ())}
        return not self._identity_columns[file.spec_id] <= recorded

    @cached_property
    def _identity_columns(self) -> dict[int, set[int]]:
        """Ids of the columns with an identity partition, by partition spec."""
        return {
            number: {each.source_id for each in spec.fields if isinstance(each.transform, IdentityTransform)}
            for number, spec in self.table.specs().items()
        }

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """Snapshots that the run made, newest first."""
        known = {snapshot.snapshot_id for snapshot in _ancestry(self.before)} if self.before else set[int]()
        return list(takewhile(lambda snapshot: snapshot.snapshot_id not in known, _ancestry(self.table)))

    @cached_property
    def live(self) -> LiveFileDiff:
        """Live files that the run added and removed."""
        return live_file_diff(self.before, self.table)

    def unmarked(self, makers: Iterable[Maker]) -> list[int]:
        """Return the ids of new snapshots, in any branch of the table, that none of these runs made."""
        wanted = {(run_id, str(attempt)) for run_id, attempts in makers for attempt in attempts}
        known = {each.snapshot_id for each in self.before.snapshots()} if self.before else set[int]()
        return [
            each.snapshot_id
            for each in self.table.snapshots()
            if each.snapshot_id not in known
            and (snapshot_property(each, RUN_ID), snapshot_property(each, ATTEMPT)) not in wanted
        ]

    def change(self) -> TableChange:
        """Return the run's change of the table: operations from its snapshots, everything else from its live files."""
        operations = dict.fromkeys(each.summary.operation.value for each in reversed(self.snapshots) if each.summary)
        created = self.before is None
        added = [entry.data_file for entry in self.live.added]
        added_bytes = sum(file.file_size_in_bytes for file in added)
        return TableChange(
            operation="+".join(operations) or ("create" if created else "alter"),
            added_rows=self.live.added_rows,
            deleted_rows=self.live.deleted_rows,
            deletes_by_value=self.live.has_equality_deletes,
            added_files=len(added),
            removed_files=len(self.live.removed),
            added_bytes=added_bytes,
            distribution=self.distribution,
            total_rows=self.total_rows,
            created=created,
            hint=describe_small_files(
                self.partitions, len({repr(file.partition) for file in added}), len(added), added_bytes
            ),
        )

    @cached_property
    def partitions(self) -> list[Partition]:
        """Partition fields of the table, except void ones."""
        schema = self.table.schema()
        return [
            Partition(schema.find_column_name(field.source_id) or field.name, str(column), str(field.transform))
            for field in self.table.spec().fields
            if not isinstance(field.transform, VoidTransform)
            for column in [schema.find_type(field.source_id)]
        ]

    @cached_property
    def layout(self) -> tuple[int, set[int]]:
        """Number of partition fields that are not void, and the other partition specs of live data files."""
        own = self.table.spec().spec_id
        specs = {
            each.partition_spec_id for each in self.manifests if each.content == ManifestContent.DATA and _lives(each)
        }
        return len(self.partitions), specs - {own}

    @cached_property
    def distribution(self) -> str:
        """Distribution mode of Spark's writes to the table. Source: Iceberg's documentation, "Write properties"."""
        usual = "hash" if self.table.spec().fields else "none"
        return self.table.properties.get(_DISTRIBUTION, "range" if self.table.sort_order().fields else usual)

    @property
    def is_compaction(self) -> bool:
        """True if all snapshots of the run state that they rewrote files without changing rows."""
        return bool(self.snapshots) and is_compaction(self.snapshots)

    @property
    def same_rows(self) -> bool:
        """True if the run, a compaction, left the number of rows unchanged as far as metadata can tell."""
        if self.before is None or not self.is_compaction:
            return False
        before = TableState(self.before, None)
        return self.row_deletes or before.row_deletes or self.live.added_rows == self.live.deleted_rows

    @property
    def compacted_since(self) -> bool:
        """True if only compactions lead from the version before to this one: the same rows in other files.

        False if snapshots between the two were expired, since nothing is proven then.
        """
        if self.before is None or not self.snapshots or self.table.schema() != self.before.schema():
            return False
        before = self.before.metadata
        is_next = self.snapshots[-1].parent_snapshot_id == before.current_snapshot_id
        return self.table.metadata.table_uuid == before.table_uuid and is_next and self.same_rows

    @cached_property
    def row_deletes(self) -> bool:
        """True if delete files apply to the table's rows."""
        return any(manifest.content == ManifestContent.DELETES and _lives(manifest) for manifest in self.manifests)

    def volumes(self) -> list[int]:
        """Return the number of rows that each earlier publication added, newest first, as far as snapshots are kept."""
        if self.before is None:
            return []
        by_run: dict[str, list[Snapshot]] = {}
        for snapshot in _ancestry(self.before):
            by_run.setdefault(snapshot_property(snapshot, RUN_ID) or str(snapshot.snapshot_id), []).append(snapshot)
        return [_volume(snapshots) for snapshots in by_run.values() if not is_compaction(snapshots)]

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """Manifests of the table's last snapshot."""
        snapshot = self.table.current_snapshot()
        return snapshot.manifests(self.table.io) if snapshot else []

    def entries(self, added_only: bool) -> Iterator[ManifestEntry]:
        """Yield the live data files, or only those that the run added."""
        if added_only:
            yield from self.live.added
            return
        for manifest in self.manifests:
            if manifest.content == ManifestContent.DATA:
                yield from manifest.fetch_manifest_entry(self.table.io, discard_deleted=True)

    @property
    def total_rows(self) -> int | None:
        """Number of rows of the table after the run, or None if row-level deletes hide it."""
        if self.row_deletes:
            return None
        snapshot = self.table.current_snapshot()
        stated = snapshot_property(snapshot, "total-records") if snapshot else "0"
        if stated is not None:
            return int(stated)
        return sum(entry.data_file.record_count for entry in self.entries(added_only=False))


def load_table(version: TableVersion, properties: Mapping[str, str]) -> StaticTable:
    """Load a table at a version. Its current snapshot is that of the version, not that of the metadata file.

    Args:
        properties: Iceberg's properties for file access.
    """
    return _load_table(version.metadata_location, version.snapshot_id, tuple(sorted(properties.items())))


@lru_cache(maxsize=16)
def _load_table(location: str, snapshot_id: int | None, properties: tuple[tuple[str, str], ...]) -> StaticTable:
    """Load a table, cached by its file: equal versions in two files may differ outside of main."""
    table = StaticTable.from_metadata(location, dict(properties))
    if table.metadata.current_snapshot_id != snapshot_id:
        refs = {name: ref for name, ref in table.metadata.refs.items() if name != MAIN_BRANCH}
        if snapshot_id is not None:
            refs[MAIN_BRANCH] = SnapshotRef.model_validate({"snapshot-id": snapshot_id, "type": "branch"})
        update = {"current_snapshot_id": snapshot_id, "refs": refs}
        table.metadata = table.metadata.model_copy(update=update)
    return table


def _plain_type(kind: IcebergType) -> str:
    match kind:
        case StructType():
            return f"struct<{', '.join(f'{field.name}: {_plain_type(field.field_type)}' for field in kind.fields)}>"
        case ListType():
            return f"list<{_plain_type(kind.element_type)}>"
        case MapType():
            return f"map<{_plain_type(kind.key_type)}, {_plain_type(kind.value_type)}>"
    return str(kind)


def _ancestry(table: StaticTable) -> Iterator[Snapshot]:
    """Yield the current snapshot of a table and its ancestors, as far as they are kept."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
    snapshot = table.current_snapshot()
    while snapshot:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = by_id.get(parent) if parent is not None else None


def clear_table_caches() -> None:
    """Empty the caches of tables and manifest lists in this process, for measurements."""
    _load_table.cache_clear()
    clear_manifest_cache()


def _lives(manifest: ManifestFile) -> bool:
    """Return True if a manifest lists live files."""
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0) > 0


def is_compaction(snapshots: list[Snapshot]) -> bool:
    """Return True if all snapshots state that they rewrote files without changing rows."""
    return all(each.summary is not None and each.summary.operation.value == "replace" for each in snapshots)


def _volume(snapshots: list[Snapshot]) -> int:
    """Return the number of rows that one run added. Rows removed again after an append do not count."""
    added, removed = (
        sum(int(snapshot_property(s, key) or 0) for s in snapshots) for key in ("added-records", "deleted-records")
    )
    first = snapshots[-1].summary
    appended = first is not None and first.operation.value == "append"
    return added - removed if appended else added


def snapshot_property(snapshot: Snapshot, key: str) -> str | None:
    """Return the value of a key in the summary of a snapshot, or None."""
    return snapshot.summary.additional_properties.get(key) if snapshot.summary else None
