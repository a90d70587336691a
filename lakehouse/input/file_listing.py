"""List the files of runs for people: files loaded on main, files of open runs, and files of quarantines."""

import fnmatch
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timezone

from lakehouse.catalog import BranchCatalog, BranchInfo
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.loaded_files_index import FileLoad
from lakehouse.quarantine.quarantined_branches import PREFIX
from sluice.contracts.lake_queries import FileEntry, FileOutcome, ListFilesInput, ListFilesResult
from sluice.errors import ManifestUnreadable, NoSuchBranch
from sluice.identifiers import ATTEMPTS
from sluice.input.publications import InputRecord, read_input_record
from sluice.times import parse_time

_COMMITS = 20
"""Maximum number of commits of a branch searched for its manifest: commits of the job come after it."""


def list_files(catalog: BranchCatalog, loaded_files: LoadedFiles, query: ListFilesInput) -> ListFilesResult:
    """Return the files that match a query, newest first: those under way, quarantined, and published."""
    unknown = loaded_files.unknown()
    entries: list[FileEntry] = []
    kinds: tuple[tuple[str, FileOutcome], ...] = ((ATTEMPTS, "under way"), (PREFIX, "quarantined"))
    for prefix, outcome in kinds:
        for branch in catalog.list_branches(prefix):
            try:
                entries += _files_of_branch(catalog, loaded_files, branch, outcome, query)
            except ManifestUnreadable as error:
                unknown.append(f"{branch.name}: {error}")
            except NoSuchBranch:
                continue  # its run ended meanwhile
    condition, values = _condition(query)
    loads, total = loaded_files.list_files(condition, values, query.limit)
    present = {*loaded_files.on_present_tables(loads)}
    published = [
        FileEntry(
            path=load.file.path,
            size=load.size,
            identity=load.identity,
            table=load.file.table,
            run_id=load.file.run_id,
            workflow_id=load.file.workflow_id,
            pipeline=load.pipeline,
            outcome=_outcome(load, present),
            since=load.file.at,
            commit=load.file.commit,
            partition=load.file.scope.label,
        )
        for load in loads
    ]
    files = newest_first([*entries, *published])[: query.limit]
    return ListFilesResult(files=files, total=len(entries) + total, unknown=unknown[: query.limit])


def _outcome(load: FileLoad, present: Collection[FileLoad]) -> FileOutcome:
    if not load.in_effect:
        return "rolled back"
    return "published" if load in present else "table dropped"


def newest_first(files: Sequence[FileEntry]) -> list[FileEntry]:
    """Return files by their time. Files of one second keep their order."""
    return sorted(files, key=_time, reverse=True)


def _time(file: FileEntry) -> datetime:
    time = parse_time(file.since)
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _files_of_branch(
    catalog: BranchCatalog, loaded_files: LoadedFiles, branch: BranchInfo, outcome: FileOutcome, query: ListFilesInput
) -> Iterator[FileEntry]:
    record = _record_of_branch(catalog, branch)
    if record is None or record.manifest is None:
        return
    if query.run and query.run not in (record.run_id, record.workflow_id, record.pipeline):
        return
    manifest = loaded_files.manifests.read(record.manifest)
    for table in manifest.header.tables:
        for file in manifest.loaded if query.table in (None, table) else ():
            if _is_asked_for(file.path, file.identity, query):
                yield FileEntry(
                    path=file.path,
                    size=file.size,
                    identity=file.identity,
                    table=table,
                    run_id=record.run_id,
                    workflow_id=record.workflow_id,
                    pipeline=record.pipeline,
                    outcome=outcome,
                    since=branch.committed_at.isoformat(),
                    commit=branch.head,
                    partition=file.scope.label,
                )


def _record_of_branch(catalog: BranchCatalog, branch: BranchInfo) -> InputRecord | None:
    """Return the input record of a branch, from its newest commit that names a manifest."""
    newest = read_input_record(branch.properties)
    if newest and newest.manifest:
        return newest
    for _, commit in zip(range(_COMMITS), catalog.history(branch.name), strict=False):
        record = read_input_record(commit.properties)
        if record and record.manifest:
            return record if record.run_id in branch.name else None
    return None


def _is_asked_for(path: str, identity: str, query: ListFilesInput) -> bool:
    if not query.paths and not query.identities:
        return True
    if path in query.paths or identity.split("|", maxsplit=1)[0] in query.identities:
        return True
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in query.paths)


def _condition(query: ListFilesInput) -> tuple[str, Sequence[object]]:
    """Return the query as a condition of the index, with the values to bind."""
    conditions, values = [], list[object]()
    if query.table:
        conditions.append("f.table_name = ?")
        values.append(query.table)
    if query.run:
        conditions.append("? IN (r.run_id, r.workflow_id, r.pipeline)")
        values.append(query.run)
    if query.paths or query.identities:
        asked = ["f.path = ?", "f.path GLOB ?"] * len(query.paths)
        asked += ["f.identity = ?", "f.identity GLOB ? || '|*'"] * len(query.identities)  # in any partition
        conditions.append(f"({' OR '.join(asked)})")
        values += [each for name in (*query.paths, *query.identities) for each in (name, name)]
    return " AND ".join(conditions), values
