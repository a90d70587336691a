"""List the quarantined branches."""

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine.quarantined_branches import (
    QuarantinedBranch,
    find_only_quarantined_branch,
    list_quarantined_branches,
    read_quarantined_tables,
)
from sluice.contracts.lake_queries import check_result_size
from sluice.contracts.quarantine_queries import (
    ListQuarantineInput,
    ListQuarantineResult,
    QuarantineEntry,
    QuarantineSummary,
)

_REASON = 200
"""Maximum number of characters of a reason in the list. `describe_quarantine` returns the whole reason."""


@dataclass(frozen=True)
class ListQuarantineActivity:
    """The activity `list_quarantine`. Needs the catalog and Iceberg's FileIO properties for the lake."""

    catalog: BranchCatalog
    io: Mapping[str, str]

    @activity.defn(name="list_quarantine")
    def list_quarantine(self, input: ListQuarantineInput) -> ListQuarantineResult:
        """Return all quarantined branches, or the branch of one run, each with the beginning of its reason."""
        if input.run is None:
            branches = list_quarantined_branches(self.catalog)
        else:
            branches = [find_only_quarantined_branch(self.catalog, input.run)]
        entries = [self._entry(branch, input.sizes) for branch in branches]
        if input.run is not None:
            entries = [self._with_tables(branch, each) for branch, each in zip(branches, entries, strict=True)]
        result = ListQuarantineResult(quarantined=entries)
        check_result_size(len(result.model_dump_json().encode()), "discard quarantines that are not needed any more")
        return result

    def _entry(self, branch: QuarantinedBranch, measured: bool) -> QuarantineEntry:
        size = (
            sum(table.bytes for table in read_quarantined_tables(self.catalog, self.io, branch)) if measured else None
        )
        return QuarantineEntry(summary=_shorten_reason(branch.summary), bytes=size)

    def _with_tables(self, branch: QuarantinedBranch, entry: QuarantineEntry) -> QuarantineEntry:
        """Return an entry with the tables that the branch changes, even if its run verified none of them."""
        summary = entry.summary
        if summary.tables or not branch.is_complete:
            return entry
        diffs = self.catalog.diff(branch.base, branch.branch, branch.quarantined_hash)
        return entry.model_copy(
            update={"summary": summary.model_copy(update={"tables": {d.name: None for d in diffs}})}
        )


def _shorten_reason(summary: QuarantineSummary) -> QuarantineSummary:
    reason = summary.reason
    return summary.model_copy(update={"reason": reason[:_REASON] + "…"}) if len(reason) > _REASON else summary
