"""Find the two states of the lake that a person wants to compare."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse.catalog import BranchCatalog, CommitInfo
from lakehouse.publishing.published_commits import recorded_pipeline
from lakehouse.quarantine.quarantined_branches import PREFIX, QuarantinedBranch, find_quarantined_branch
from sluice.contracts.table_diffs import DiffSide, DiffTablesInput, TableKey
from sluice.diff.keys import checked_keys
from sluice.errors import InvalidPipeline
from sluice.identifiers import ATTEMPTS, attempt_of, run_of, suggested_run
from sluice.publishing.commit_properties import PIPELINE, RELEASED_RUN, RUN_ID, WORKFLOW_ID

_HASH_DIGITS = 8
"""Minimum number of digits of a hash that identify a commit."""
_SEARCHED_COMMITS = 500
"""Maximum number of commits on main that are searched for the key of a table."""


@dataclass(frozen=True)
class DiffedStates:
    """The two states of a diff."""

    before: DiffSide
    after: DiffSide

    @property
    def is_branch(self) -> bool:
        """True if a branch is compared with its base on main."""
        return self.before.branch != self.after.branch


def find_diffed_states(catalog: BranchCatalog, input: DiffTablesInput) -> DiffedStates:
    """Return the states that a question names.

    A branch is compared with its base, a commit on main with the commit before it. Of two commits, the states of main
    after each are compared.

    Raises:
        InvalidPipeline: there is no such branch, run or commit.
    """
    if input.other:
        before, after = (_main_after(catalog, each) for each in (input.what, input.other))
        return DiffedStates(before, after)
    return _of_branch(catalog, input.what, input.head) or _of_commit(catalog, input.what)


def _of_branch(catalog: BranchCatalog, named: str, head: str) -> DiffedStates | None:
    """Return the states of a branch, or of the latest branch of a run; None if there is no such branch."""
    if named == catalog.main:
        raise InvalidPipeline(f"{named} has no base: name a run or a commit, or two commits as in `diff HASH {named}`")
    exact = [each for each in catalog.list_branches(named) if each.name == named]
    attempts = [each for each in catalog.list_branches(ATTEMPTS) if run_of(each.name) == named]
    if not exact and attempts:
        exact = [max(attempts, key=lambda each: attempt_of(each.name) or 0)]
    if exact and not exact[0].name.startswith(PREFIX):
        (branch,) = exact
        return _states(catalog, branch.name, head or branch.head, catalog.fork_point(branch.name), run_of(branch.name))
    try:
        return _of_quarantine(catalog, find_quarantined_branch(catalog, named), head)
    except InvalidPipeline:
        return None


def _of_quarantine(catalog: BranchCatalog, branch: QuarantinedBranch, head: str) -> DiffedStates:
    base = branch.base or catalog.fork_point(branch.branch)
    kept = head or branch.quarantined_hash or branch.head
    return _states(catalog, branch.branch, kept, base, branch.run_id, branch.workflow_id)


def _states(
    catalog: BranchCatalog, branch: str, head: str, base: str, run_id: str, workflow_id: str = ""
) -> DiffedStates:
    before = DiffSide(branch=catalog.main, hash=base, description=f"{catalog.main} at the base of the branch")
    after = DiffSide(branch=branch, hash=head, description=branch, run_id=run_id, workflow_id=workflow_id)
    return DiffedStates(before, after)


def _of_commit(catalog: BranchCatalog, named: str) -> DiffedStates:
    commit = _find_commit(catalog, named)
    before = DiffSide(branch=catalog.main, hash=commit.parent, description=f"{catalog.main} before it")
    return DiffedStates(before, _side(catalog, commit))


def _main_after(catalog: BranchCatalog, named: str) -> DiffSide:
    if named == catalog.main:
        return DiffSide(branch=named, hash=catalog.head(named), description=f"{named} now")
    return _side(catalog, _find_commit(catalog, named))


def _side(catalog: BranchCatalog, commit: CommitInfo) -> DiffSide:
    run_id, workflow_id = commit.properties.get(RUN_ID, ""), commit.properties.get(WORKFLOW_ID, "")
    by = f"the publication of {workflow_id}" if workflow_id else f"the commit {commit.message[:60]!r}"
    return DiffSide(
        branch=catalog.main,
        hash=commit.hash,
        description=f"{catalog.main} after {by}",
        run_id=run_id,
        workflow_id=workflow_id,
    )


def _find_commit(catalog: BranchCatalog, named: str) -> CommitInfo:
    """Return the newest commit on main with a hash, or of a run, or of a pipeline.

    Raises:
        InvalidPipeline: there is none.
    """
    pipelines: set[str] = set()
    ids: set[str] = set()
    for commit in catalog.history(catalog.main):
        own = {commit.properties.get(key, "") for key in (RUN_ID, WORKFLOW_ID, RELEASED_RUN)}
        pipeline = commit.properties.get(PIPELINE, "")
        is_hash = len(named) >= _HASH_DIGITS and commit.hash.startswith(named)
        if commit.parent and named and (named in (*own, pipeline) or is_hash):
            return commit
        pipelines.add(pipeline)
        ids |= own
    raise InvalidPipeline(
        f"there is no branch, run or commit {named[:200]!r}{suggested_run(named, pipelines, ids)}: give a run that "
        f"`list` shows, a branch, or at least {_HASH_DIGITS} digits of a commit on {catalog.main}"
    )


def recorded_keys(catalog: BranchCatalog, tables: list[str]) -> Mapping[str, TableKey]:
    """Return the keys of tables that the newest publications of them record, as far as they check uniqueness."""
    keys: dict[str, TableKey] = {}
    left = set(tables)
    for number, commit in enumerate(catalog.history(catalog.main)):
        if not left or number >= _SEARCHED_COMMITS:
            break
        pipeline = recorded_pipeline(commit.properties)
        named = left & pipeline.tables.keys() if pipeline else set[str]()
        if pipeline and named:
            checked = checked_keys(pipeline.tables)
            keys |= {name: checked[name] for name in named if name in checked}
            left -= named
    return keys
