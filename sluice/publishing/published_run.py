"""Find the published run that a person names."""

from collections.abc import Sequence

from sluice.ambiguous_names import describe_several
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggested_run
from sluice.publishing.rollback import PublishedCommit, runs_taken_back
from sluice.times import format_time

_HASH_DIGITS = 8
"""Minimum number of digits of a commit's hash that identify a run."""


def find_published_run(commits: Sequence[PublishedCommit], named: str) -> PublishedCommit:
    """Find the commit on main of a run, by its run id, its workflow id, its commit's hash, or its pipeline.

    A workflow id or a pipeline must fit only one run on main. A roll-back is found by its run id or hash alone.

    Args:
        commits: the commits on main, newest first.

    Raises:
        InvalidPipeline: no run fits, several fit, or the run was rolled back already.
    """
    taken = runs_taken_back(commits)
    for each in commits:
        if each.run_id and (each.run_id == named or (len(named) >= _HASH_DIGITS and each.hash.startswith(named))):
            if roll_back := taken.get(each.run_id):
                raise InvalidPipeline(
                    f"{each.workflow_id or each.run_id} was rolled back already, by {roll_back.workflow_id} (commit "
                    f"{roll_back.hash[:12]}): to bring it back, roll that back"
                )
            return each
    of_name = [
        each
        for each in commits
        if named in (each.workflow_id, each.pipeline) and each.run_id and each.run_id not in taken
    ]
    # The name of a pipeline never means a roll-back, which has its own workflow id.
    candidates = [each for each in of_name if named and (named == each.workflow_id or not each.rolled_back)]
    if not candidates:
        ids = [id for each in commits for id in (each.run_id, each.workflow_id)]
        close = suggested_run(named, [each.pipeline for each in commits], ids)
        raise InvalidPipeline(
            f"main contains no published run {named[:200]!r}{close}: give a run's id, its workflow id, its commit on "
            "main, or its pipeline"
        )
    if len(candidates) > 1:
        raise InvalidPipeline(describe_several(named[:200], "published runs", [_line(each) for each in candidates]))
    return candidates[0]


def _line(commit: PublishedCommit) -> str:
    loaded = f", for {commit.loaded_for}" if commit.loaded_for else ""
    return f"{commit.run_id}  {commit.workflow_id}{loaded}, of {format_time(commit.committed_at)}"
