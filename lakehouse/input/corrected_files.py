"""Refuse to requeue rows whose source file was loaded again later with other content."""

from collections.abc import Collection, Iterator, Sequence

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_identity import commits_of_other_tables, loads_on_main
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.loaded_files_index import FileLoad
from lakehouse.publishing.traced_runs import TracedRuns, trace_runs
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.selected_input import ManifestRef
from sluice.errors import InvalidInput, ManifestUnreadable
from sluice.input.held_files import LoadedFile
from sluice.input.publications import read_input_record
from sluice.input.selection import describe_correction, describe_dropped_table, refuse_unknown_runs
from sluice.publishing.commit_properties import RUN_ID
from sluice.publishing.load_properties import published_runs

_AT_ONCE = 200
"""Maximum number of runs in one question to the index."""


def check_requeued_files(
    catalog: BranchCatalog, loaded_files: LoadedFiles, tables: Sequence[str], runs: Collection[str]
) -> None:
    """Check that main got no other content of a source file after the rows of that file that are requeued now.

    A pipeline that loads its files again each time, and a landing zone that loads each content of a path, want both
    contents, so their rows are requeued.

    Args:
        tables: tables that the runs loaded files into. Rows are requeued into the first one.
        runs: ids of the runs that quarantined the rows.

    Raises:
        InvalidInput: main got other content, so it may contain the rows already. Or the table was dropped and created
            again, so its files may have been loaded again. Or a run is unknown: those of a joint publish are not on
            main under their own ids.
        ManifestUnreadable: it is unknown which files one of the runs, or a later run, loaded.
    """
    traced = trace_runs(catalog, runs)
    refuse_unknown_runs(traced.unknown)
    manifests = _manifests_of(traced)
    io, head = loaded_files.manifests.io, catalog.head(catalog.main)
    oldest_first = (commit for commit in reversed(traced.commits) if commit.hash in manifests)
    loaded_by = {commit.hash: commit.properties.get(RUN_ID, "") for commit in oldest_first}
    if commits_of_other_tables(catalog, io, tables[0], loaded_by, head):
        raise InvalidInput(describe_dropped_table(tables[0]))
    try:
        for own, later in _corrections(catalog, loaded_files, tables, list(manifests)):
            if not loaded_files.manifests.read(manifests[own.commit]).header.wants_all_contents:
                raise InvalidInput(describe_correction(own, later))
    except ManifestUnreadable as error:
        raise ManifestUnreadable(f"{error}. A requeue has {OVER_YOUNGER} instead of --again") from error


def _manifests_of(traced: TracedRuns) -> dict[str, ManifestRef]:
    """Return the input manifests of some runs by commit, newest first. Requeues have no manifest."""
    of_runs = [commit for commit in traced.commits if traced.runs & published_runs(commit.properties)]
    records = {commit.hash: read_input_record(commit.properties) for commit in of_runs}
    return {hash: record.manifest for hash, record in records.items() if record and record.manifest}


def _corrections(
    catalog: BranchCatalog, loaded_files: LoadedFiles, tables: Sequence[str], commits: Sequence[str]
) -> Iterator[tuple[LoadedFile, LoadedFile]]:
    """Yield loads by some commits, each with a later load of other content of the same rows that main contains."""
    for start in range(0, len(commits), _AT_ONCE):
        some = commits[start : start + _AT_ONCE]
        named, marks = ", ".join("?" * len(tables)), ", ".join("?" * len(some))
        condition = (
            f"f.table_name IN ({named}) AND f.path IN (SELECT own.path FROM files own JOIN runs o ON o.seq = own.seq "
            f"WHERE o.hash IN ({marks}))"
        )
        newest_first, _ = loaded_files.list_files(condition, [*tables, *some], -1, tables)
        pairs = list(_pairs(newest_first, some))
        head = catalog.head(catalog.main)
        on_main = {*loads_on_main(catalog, loaded_files.manifests.io, [later for _, later in pairs], head)}
        yield from ((own, later) for own, later in pairs if later in on_main)


def _pairs(newest_first: Sequence[FileLoad], commits: Collection[str]) -> Iterator[tuple[LoadedFile, LoadedFile]]:
    """Yield loads by some commits, each with a later load in effect of other content of the same rows."""
    newer: dict[tuple[str, str], list[LoadedFile]] = {}
    for load in newest_first:
        own = load.file
        after = newer.setdefault((own.table, own.path), [])
        if own.commit in commits:
            corrected = (each for each in after if each.identity != own.identity and each.scope.shares_rows(own.scope))
            yield from ((own, later) for later in corrected)
        if load.in_effect:
            after.append(own)
