"""Trace runs back in the history of main, to the runs that first had their rows."""

from collections.abc import Collection
from dataclasses import dataclass, field

from lakehouse.catalog import BranchCatalog, CommitInfo
from sluice.publishing.load_properties import published_runs, requeued_runs


@dataclass
class TracedRuns:
    """Runs, with the commits of main since the first of them."""

    runs: set[str]
    """The ids of the runs, and of those whose rows they requeued."""
    unknown: set[str]
    """The runs among them that main does not know."""
    commits: list[CommitInfo] = field(default_factory=list)
    """Commits of main, newest first. The last one published the first of the runs, if main knows all of them."""


def trace_runs(catalog: BranchCatalog, runs: Collection[str]) -> TracedRuns:
    """Read main's history back to the first of some runs.

    Rows that a requeue quarantined again are as old as those of the run whose rows it requeued.

    Args:
        runs: run ids.
    """
    traced = TracedRuns(runs={*runs}, unknown={*runs})
    for commit in catalog.history(catalog.main):
        if not traced.unknown:
            break
        traced.commits.append(commit)
        if published := traced.unknown & published_runs(commit.properties):
            requeued = requeued_runs(commit.properties)
            traced.unknown = (traced.unknown - published) | requeued
            traced.runs |= requeued
    return traced
