"""An Iceberg table before and after a run, read from its metadata without a JVM.

Source of the rules: the Iceberg table specification, sections "Snapshots", "Manifests" and "Column metrics".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile, clear_manifest_cache
from pyiceberg.table import StaticTable
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Snapshot

from lakehouse.catalog import TableDiff, TableVersion
from sluice.contracts.write import TableChange
from sluice.publishing.certificate import ATTEMPT_MARK, RUN_MARK
from sluice.publishing.written_tables import WrittenTable

_DISTRIBUTION = "write.distribution-mode"


@dataclass(frozen=True)
class TableState:
    """One table as a run left it on its branch, beside what it was before."""

    table: StaticTable
    before: StaticTable | None

    @classmethod
    def load(cls, after: TableVersion, before: TableVersion | None, properties: Mapping[str, str]) -> "TableState":
        """Load a table at its versions after and before the run."""
        return cls(load_table(after, properties), load_table(before, properties) if before else None)

    @cached_property
    def types(self) -> dict[str, str]:
        """The Iceberg type of each column, in order."""
        return {field.name: str(field.field_type) for field in self.table.schema().fields}

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """The snapshots that the run made, the newest first."""
        known = {snapshot.snapshot_id for snapshot in _ancestry(self.before)} if self.before else set[int]()
        return list(takewhile(lambda snapshot: snapshot.snapshot_id not in known, _ancestry(self.table)))

    def unmarked(self, run_id: str, attempts: Iterable[int]) -> list[int]:
        """Return the ids of snapshots of the run's branch that none of these attempts made."""
        wanted = {(run_id, str(attempt)) for attempt in attempts}
        return [
            each.snapshot_id
            for each in self.snapshots
            if (_property(each, RUN_MARK), _property(each, ATTEMPT_MARK)) not in wanted
        ]

    def change(self) -> TableChange:
        """Say what the run did to the table."""
        operations = dict.fromkeys(each.summary.operation.value for each in reversed(self.snapshots) if each.summary)
        created = self.before is None
        return TableChange(
            operation="+".join(operations) or ("create" if created else "alter"),
            added_rows=self.total("added-records"),
            deleted_rows=self.total("deleted-records") + self.total("added-position-deletes"),
            added_files=self.total("added-data-files"),
            added_bytes=self.total("added-files-size"),
            distribution=self.distribution,
            total_rows=None if self.row_deletes else self._live_rows(),
            created=created,
        )

    @cached_property
    def distribution(self) -> str:
        """How Spark spreads rows that it writes to the table. Source: Iceberg's documentation, "Write properties"."""
        usual = "hash" if self.table.spec().fields else "none"
        return self.table.properties.get(_DISTRIBUTION, "range" if self.table.sort_order().fields else usual)

    @property
    def same_rows(self) -> bool:
        """Whether the run left the table as many rows as it had, as far as metadata can tell."""
        if self.before is None or self.change().operation != "replace":
            return False
        before = TableState(self.before, None)
        return self.row_deletes or before.row_deletes or before._live_rows() == self._live_rows()

    @cached_property
    def row_deletes(self) -> bool:
        """Whether delete files apply to the table's rows."""
        return any(
            manifest.content == ManifestContent.DELETES
            and (manifest.added_files_count or 0) + (manifest.existing_files_count or 0) > 0
            for manifest in self.manifests
        )

    def volumes(self) -> list[int]:
        """Return how many rows each earlier publication added, the newest first, as far back as snapshots are kept."""
        if self.before is None:
            return []
        by_run: dict[str, list[Snapshot]] = {}
        for snapshot in _ancestry(self.before):
            by_run.setdefault(_property(snapshot, RUN_MARK) or str(snapshot.snapshot_id), []).append(snapshot)
        return [_volume(snapshots) for snapshots in by_run.values() if not _is_compaction(snapshots)]

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """Return the manifests of the table's last snapshot."""
        snapshot = self.table.current_snapshot()
        return snapshot.manifests(self.table.io) if snapshot else []

    def entries(self, added_only: bool) -> Iterator[ManifestEntry]:
        """List the live data files, or those of them that the run added."""
        run_snapshots = {snapshot.snapshot_id for snapshot in self.snapshots}
        for manifest in self.manifests:
            if manifest.content != ManifestContent.DATA:
                continue
            if added_only and manifest.added_snapshot_id not in run_snapshots:
                continue  # a manifest from before the run lists no file of the run
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True):
                if not added_only or entry.snapshot_id in run_snapshots:
                    yield entry

    def total(self, key: str) -> int:
        """Add up a number in the summaries of the run's snapshots."""
        return sum(int(_property(each, key) or 0) for each in self.snapshots)

    def _live_rows(self) -> int:
        snapshot = self.table.current_snapshot()
        stated = _property(snapshot, "total-records") if snapshot else "0"
        if stated is not None:
            return int(stated)
        return sum(entry.data_file.record_count for entry in self.entries(added_only=False))


def read_written_table(
    diff: TableDiff, since: TableVersion | None, io: Mapping[str, str], run_id: str, attempts: Iterable[int]
) -> WrittenTable:
    """Read what a branch holds of one table, for the decision whether the write is complete.

    Args:
        since: the version from which on every snapshot must be the run's; None means from the first.
        attempts: the attempts of the run that may have made them.
    """
    if diff.after is None:
        return WrittenTable(diff.name, None)
    state = TableState.load(diff.after, diff.before, io)
    checked = TableState.load(diff.after, since, io)
    return WrittenTable(
        diff.name,
        state.change(),
        foreign_snapshots=len(checked.unmarked(run_id, attempts)),
        same_rows=state.same_rows,
    )


def load_table(version: TableVersion, properties: Mapping[str, str]) -> StaticTable:
    """Load a table at a version: its current snapshot is that of the version, whatever the metadata file has.

    Args:
        properties: how Iceberg reads the lake.
    """
    return _load_table(version, tuple(sorted(properties.items())))


@lru_cache(maxsize=16)
def _load_table(version: TableVersion, properties: tuple[tuple[str, str], ...]) -> StaticTable:
    table = StaticTable.from_metadata(version.metadata_location, dict(properties))
    if table.metadata.current_snapshot_id != version.snapshot_id:
        refs = {name: ref for name, ref in table.metadata.refs.items() if name != MAIN_BRANCH}
        if version.snapshot_id is not None:
            refs[MAIN_BRANCH] = SnapshotRef.model_validate({"snapshot-id": version.snapshot_id, "type": "branch"})
        update = {"current_snapshot_id": version.snapshot_id, "refs": refs}
        table.metadata = table.metadata.model_copy(update=update)
    return table


def _ancestry(table: StaticTable) -> Iterator[Snapshot]:
    """Yield the current snapshot of a table and its ancestors, as far back as they are kept."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
    snapshot = table.current_snapshot()
    while snapshot:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = by_id.get(parent) if parent is not None else None


def clear_table_caches() -> None:
    """Empty the caches of tables and manifest lists that this process read, for measurements."""
    _load_table.cache_clear()
    clear_manifest_cache()


def _is_compaction(snapshots: list[Snapshot]) -> bool:
    return all(each.summary is not None and each.summary.operation.value == "replace" for each in snapshots)


def _volume(snapshots: list[Snapshot]) -> int:
    """Return the rows that one run brought: what it removed again after appending does not count."""
    added, removed = (
        sum(int(_property(s, key) or 0) for s in snapshots) for key in ("added-records", "deleted-records")
    )
    first = snapshots[-1].summary
    appended = first is not None and first.operation.value == "append"
    return added - removed if appended else added


def _property(snapshot: Snapshot, key: str) -> str | None:
    return snapshot.summary.additional_properties.get(key) if snapshot.summary else None
