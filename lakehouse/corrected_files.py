"""Refuse to requeue rows whose files were loaded again with other content after the rows were quarantined."""

from collections.abc import Collection, Iterator, Sequence

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_identity import loads_on_main
from lakehouse.loaded_files import LoadedFiles
from lakehouse.loaded_files_index import FileLoad
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.selected_input import ManifestRef
from sluice.errors import ManifestUnreadable
from sluice.input.held_files import LoadedFile
from sluice.input.publications import read_input_record
from sluice.input.selection import refuse_corrected_rows, refuse_unknown_runs
from sluice.publishing.commit_properties import RELEASED_RUN, RUN_ID
from sluice.publishing.load_properties import REQUEUED_RUNS

_AT_ONCE = 200
"""Maximum number of runs in one question to the index."""


def check_requeued_files(
    catalog: BranchCatalog, loaded_files: LoadedFiles, tables: Sequence[str], runs: Collection[str]
) -> None:
    """Check that main did not get other content of a file after rows of it that are requeued now.

    A pipeline that loads its files again each time, and a landing zone that loads each content of a path, want both
    contents, so their rows are requeued.

    Args:
        tables: tables that the runs loaded files into.
        runs: ids of the runs that quarantined the rows.

    Raises:
        InvalidInput: main got other content, so it may contain the rows already. Or a run is unknown: those of a joint
            publish are not on main under their own ids.
        ManifestUnreadable: it is unknown which files one of the runs, or a later run, loaded.
    """
    manifests, unknown = _manifests_of(catalog, runs)
    refuse_unknown_runs(unknown)
    commits = list(manifests)
    try:
        for start in range(0, len(commits), _AT_ONCE):
            corrections = list(_corrections(loaded_files, tables, commits[start : start + _AT_ONCE]))
            head = catalog.head(catalog.main)
            for own, later in corrections:
                if not loads_on_main(catalog, loaded_files.manifests.io, [later], head):
                    continue
                if not loaded_files.manifests.read(manifests[own.commit]).header.wants_all_contents:
                    refuse_corrected_rows(own, later)
    except ManifestUnreadable as error:
        raise ManifestUnreadable(f"{error}. A requeue has {OVER_YOUNGER} instead of --again") from error


def _manifests_of(catalog: BranchCatalog, runs: Collection[str]) -> tuple[dict[str, ManifestRef], set[str]]:
    """Return the manifests of the files that rows of some runs came from, by commit, and the runs not on main.

    Rows that a requeue quarantined again came from the files of the runs whose rows it requeued. The history has these
    runs further back.
    """
    missing = {*runs}
    manifests: dict[str, ManifestRef] = {}
    for commit in catalog.history(catalog.main):
        if not missing:
            break
        published = missing & {commit.properties.get(each, "") for each in (RUN_ID, RELEASED_RUN)}
        if not published:
            continue
        missing -= published
        missing |= {each for each in commit.properties.get(REQUEUED_RUNS, "").split(",") if each}
        record = read_input_record(commit.properties)
        if record and record.manifest:
            manifests[commit.hash] = record.manifest
    return manifests, missing


def _corrections(
    loaded_files: LoadedFiles, tables: Sequence[str], commits: Sequence[str]
) -> Iterator[tuple[LoadedFile, LoadedFile]]:
    """Yield each file that one of these commits loaded, with the latest load of other content after it, if any."""
    named, marks = ", ".join("?" * len(tables)), ", ".join("?" * len(commits))
    condition = (
        f"f.table_name IN ({named}) AND f.path IN (SELECT own.path FROM files own JOIN runs o ON o.seq = own.seq "
        f"WHERE o.hash IN ({marks}))"
    )
    newest_first, _ = loaded_files.list_files(condition, [*tables, *commits], -1, tables)
    newer: dict[tuple[str, str], list[FileLoad]] = {}
    for load in newest_first:
        after = newer.setdefault((load.file.table, load.file.path), [])
        if load.file.commit in commits:
            yield from ((load.file, each.file) for each in after if _is_correction(load.file, each.file))
        if load.in_effect:
            after.append(load)


def _is_correction(own: LoadedFile, later: LoadedFile) -> bool:
    """Return True if a later load of the same path has other content, of rows that the earlier load may have."""
    is_of_scope = later.scope.covers(own.scope, is_same_path=True) or later.scope.overlaps_partly(own.scope)
    return own.identity != later.identity and is_of_scope
