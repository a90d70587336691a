"""What main's commits published, read back for a roll-back."""

from lakehouse.catalog import BranchCatalog
from sluice.publishing.certificate import RUN_ID, WORKFLOW_ID
from sluice.publishing.rollback import PublishedCommit


def list_published_commits(catalog: BranchCatalog, run_id: str) -> list[PublishedCommit]:
    """Return the commits on main with the tables that each changed, the newest first, back to the commit of a run."""
    commits: list[PublishedCommit] = []
    for commit in catalog.history(catalog.main):
        if not commit.parent:
            break
        tables = frozenset(diff.name for diff in catalog.diff(commit.parent, catalog.main, commit.hash))
        published = commit.properties.get(RUN_ID, "")
        workflow_id = commit.properties.get(WORKFLOW_ID, "")
        commits.append(PublishedCommit(commit.hash, commit.parent, published, workflow_id, tables))
        if published == run_id:
            break
    return commits
