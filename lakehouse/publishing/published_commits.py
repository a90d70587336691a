"""Read publications from main's history alone, since Temporal may have forgotten the runs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice

from pydantic import ValidationError

from lakehouse.catalog import BranchCatalog, CommitInfo
from lakehouse.publishing.table_versions import tables_changed_since
from sluice.contracts.publish import Publication
from sluice.contracts.rollback import PublishedChecks
from sluice.pipeline.model import Pipeline
from sluice.publishing.commit_properties import (
    LOADED_FOR,
    PIPELINE,
    REFERENCED,
    RELEASED_RUN,
    ROLLBACK_PIPELINE,
    ROLLED_BACK,
    RUN_ID,
    WORKFLOW_ID,
)
from sluice.publishing.opening import other_version
from sluice.publishing.rollback import PublishedCommit, runs_taken_back

_SEARCHED_COMMITS = 2_000
"""Maximum number of commits searched for the checks of a version."""


def read_published_commits(catalog: BranchCatalog) -> Iterator[PublishedCommit]:
    """Yield the commits on main, newest first, without the tables that each changed."""
    for commit in catalog.history(catalog.main):
        if commit.parent:
            yield _published_commit(commit)


def list_published_commits(catalog: BranchCatalog, run_id: str) -> list[PublishedCommit]:
    """Return the commits on main back to that of a run, newest first, each with its changed tables."""
    commits: list[PublishedCommit] = []
    for commit in read_published_commits(catalog):
        tables = frozenset(diff.name for diff in catalog.diff(commit.parent, catalog.main, commit.hash))
        commits.append(replace(commit, tables=tables))
        if commit.run_id == run_id:
            break
    return commits


def find_merge_of_run(catalog: BranchCatalog, run_id: str, since: str) -> Publication | None:
    """Return the publication of a run, by any of its attempts, after the hash `since` of main."""
    commit = catalog.find_published({RUN_ID: run_id}, since)
    return Publication(merged=True, main_before=commit.parent, main_after=commit.hash) if commit else None


def with_overtaken(catalog: BranchCatalog, publication: Publication, base: str, watched: Sequence[str]) -> Publication:
    """Return a publication with the watched tables that main changed between the branch's base and the merge.

    The catalog compares only the tables that a merge changes. The last check of the watched tables was before the merge
    request.
    """
    if not publication.merged or publication.main_before == base:
        return publication
    overtaken = tables_changed_since(catalog, watched, base, publication.main_before)
    return publication.model_copy(update={"overtaken": overtaken})


def find_publication_of_run(catalog: BranchCatalog, run_id: str, since: str) -> PublishedCommit | None:
    """Return the commit that published the rows of a run: the run's own, or that of a release of it.

    A commit that was rolled back does not count.

    Args:
        since: only commits after this hash of main are searched.
    """
    commits: list[PublishedCommit] = []
    for commit in read_published_commits(catalog):
        if commit.hash == since:
            break
        commits.append(commit)
    taken = runs_taken_back(commits)
    published = (each for each in commits if run_id in (each.run_id, each.released_run) and each.run_id not in taken)
    return next(published, None)


def describe_other_version(catalog: BranchCatalog, run_id: str, pipeline: str, digest: str) -> str:
    """Return the addition to a refusal, if a published run was of another version of the pipeline; empty if not.

    Args:
        digest: the digest of the pipeline now; empty if it is unknown.
    """
    commit = catalog.find_published({RUN_ID: run_id, PIPELINE: pipeline})
    return other_version(commit.properties, digest) if commit else ""


def recorded_pipeline(properties: Mapping[str, str]) -> Pipeline | None:
    """Return the pipeline that a commit on main records for its roll-back; None if it is too long or unreadable."""
    try:
        return Pipeline.model_validate_json(properties.get(ROLLBACK_PIPELINE, ""))
    except ValidationError:
        return None


def find_published_checks(catalog: BranchCatalog, versions: Mapping[str, str]) -> dict[str, PublishedChecks]:
    """Return the checks that audit versions of tables, as far as main's history records them.

    They are the checks of the last run, up to the version, that published the table with any. A compaction without
    checks changes no row, and does not hide them. If no run had checks, the result lists the table without checks.

    Args:
        versions: by table, a hash of main that contains the version.
    """

    @cache
    def changed(parent: str, hash: str) -> frozenset[str]:
        return frozenset(diff.name for diff in catalog.diff(parent, catalog.main, hash))

    commits = list(islice(catalog.history(catalog.main), _SEARCHED_COMMITS))
    checks: dict[str, PublishedChecks] = {}
    for table, hash in versions.items():
        hashes = [commit.hash for commit in commits]
        until_then = commits[hashes.index(hash) :] if hash in hashes else []
        commit = _commit_with_checks(table, until_then, changed)
        pipeline = recorded_pipeline(commit.properties) if commit else None
        if commit and pipeline:
            published, restored = (catalog.table_version(catalog.main, table, at) for at in (commit.hash, hash))
            checks[table] = PublishedChecks(
                workflow_id=commit.properties.get(WORKFLOW_ID, commit.hash),
                table=pipeline.tables[table],
                is_of_version=published == restored,
            )
    return checks


def _commit_with_checks(
    table: str, commits: Sequence[CommitInfo], changed: Callable[[str, str], Collection[str]]
) -> CommitInfo | None:
    """Return the last commit that published a table with checks; without one, the last commit without checks.

    None if the checks are unknown, because a commit that changed the table does not record its pipeline.

    Args:
        commits: commits of main up to the version, newest first.
        changed: returns the tables that differ between two hashes of main.
    """
    taken_back: set[str] = set()
    without: CommitInfo | None = None
    for commit in commits:
        taken_back.update(_listed(commit.properties.get(ROLLED_BACK, "")))
        if not commit.parent or commit.properties.get(RUN_ID) in taken_back:
            continue
        pipeline = recorded_pipeline(commit.properties)
        if pipeline and table not in pipeline.tables:
            continue
        if pipeline and not pipeline.tables[table].checks:
            without = without or commit
        elif table in changed(commit.parent, commit.hash):
            return commit if pipeline else None
    return without


def _published_commit(commit: CommitInfo) -> PublishedCommit:
    properties = commit.properties
    return PublishedCommit(
        commit.hash,
        commit.parent,
        run_id=properties.get(RUN_ID, ""),
        workflow_id=properties.get(WORKFLOW_ID, ""),
        pipeline=properties.get(PIPELINE, ""),
        referenced=frozenset(_listed(properties.get(REFERENCED, ""))),
        rolled_back=tuple(_listed(properties.get(ROLLED_BACK, ""))),
        released_run=properties.get(RELEASED_RUN, ""),
        loaded_for=properties.get(LOADED_FOR, ""),
        committed_at=commit.committed_at.isoformat(timespec="seconds"),
    )


def _listed(names: str) -> list[str]:
    return [name for name in names.split(",") if name]
