"""What main's commits published, read back from main's history alone: Temporal need not know the runs any more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from lakehouse.catalog import BranchCatalog, CommitInfo, tables_changed_since
from sluice.contracts.lake_queries import PublishedChecks
from sluice.contracts.publish import Publication
from sluice.pipeline.model import Pipeline
from sluice.publishing.certificate import (
    PIPELINE,
    REFERENCED,
    RELEASED_RUN,
    ROLLBACK_PIPELINE,
    ROLLED_BACK,
    RUN_ID,
    WORKFLOW_ID,
)
from sluice.publishing.rollback import PublishedCommit, runs_taken_back

_SEARCHED_COMMITS = 2_000
"""How far back the checks of a version are looked for."""


def read_published_commits(catalog: BranchCatalog) -> Iterator[PublishedCommit]:
    """Yield the commits on main, the newest first, without the tables that each changed."""
    for commit in catalog.history(catalog.main):
        if commit.parent:
            yield _published_commit(commit)


def list_published_commits(catalog: BranchCatalog, run_id: str) -> list[PublishedCommit]:
    """Return the commits on main with the tables that each changed, the newest first, back to the commit of a run."""
    commits: list[PublishedCommit] = []
    for commit in read_published_commits(catalog):
        tables = frozenset(diff.name for diff in catalog.diff(commit.parent, catalog.main, commit.hash))
        commits.append(replace(commit, tables=tables))
        if commit.run_id == run_id:
            break
    return commits


def find_merge_of_run(catalog: BranchCatalog, run_id: str, since: str) -> Publication | None:
    """Return the publication of a run, by whichever of its attempts, after the hash `since` of main."""
    commit = catalog.find_published({RUN_ID: run_id}, since)
    return Publication(merged=True, main_before=commit.parent, main_after=commit.hash) if commit else None


def with_overtaken(catalog: BranchCatalog, publication: Publication, base: str, watched: Sequence[str]) -> Publication:
    """Return a publication with the watched tables that main changed between the base of the branch and the merge.

    A catalog compares the tables that a merge changes, and no others: the last look at these was before the request.
    """
    if not publication.merged or publication.main_before == base:
        return publication
    overtaken = tables_changed_since(catalog, watched, base, publication.main_before)
    return publication.model_copy(update={"overtaken": overtaken})


def find_publication_of_run(catalog: BranchCatalog, run_id: str, since: str) -> PublishedCommit | None:
    """Return the commit by which main holds the rows of a run, its own or that of a release of it.

    One that was rolled back does not count.

    Args:
        since: the hash of main after which it can have been published.
    """
    commits: list[PublishedCommit] = []
    for commit in read_published_commits(catalog):
        if commit.hash == since:
            break
        commits.append(commit)
    taken = runs_taken_back(commits)
    published = (each for each in commits if run_id in (each.run_id, each.released_run) and each.run_id not in taken)
    return next(published, None)


def recorded_pipeline(properties: Mapping[str, str]) -> Pipeline | None:
    """Return the pipeline that a commit on main records for its roll-back; None if it is too long, or unreadable."""
    try:
        return Pipeline.model_validate_json(properties.get(ROLLBACK_PIPELINE, ""))
    except ValidationError:
        return None


def find_published_checks(catalog: BranchCatalog, versions: Mapping[str, str]) -> dict[str, PublishedChecks]:
    """Return the checks under which versions of tables were published, where their commits record them.

    Args:
        versions: by table, a hash of main that holds the version.
    """
    wanted, reached = dict(versions), set[str]()
    checks: dict[str, PublishedChecks] = {}
    for number, commit in enumerate(catalog.history(catalog.main)):
        reached |= {table for table, hash in wanted.items() if hash == commit.hash}
        if not wanted or not commit.parent or number >= _SEARCHED_COMMITS:
            break
        pipeline = recorded_pipeline(commit.properties)
        if not reached or (pipeline and not reached & pipeline.tables.keys()):
            continue
        for diff in catalog.diff(commit.parent, catalog.main, commit.hash):
            if diff.name not in reached:
                continue
            reached.discard(diff.name)
            del wanted[diff.name]
            if pipeline and diff.name in pipeline.tables:
                run = commit.properties.get(WORKFLOW_ID, commit.hash)
                checks[diff.name] = PublishedChecks(workflow_id=run, table=pipeline.tables[diff.name])
    return checks


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
    )


def _listed(names: str) -> list[str]:
    return [name for name in names.split(",") if name]
