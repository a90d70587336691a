"""Delete a quarantined branch whose rows a release has published."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine.quarantined_branches import PREFIX, keeps
from sluice.contracts.quarantine import DiscardQuarantineInput

_TRIES = 5
"""Number of tries to delete the branch. `quarantine keep` moves it by a new date, so that a try may fail."""


@dataclass(frozen=True)
class DiscardQuarantineActivity:
    """The activity `discard_quarantine`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="discard_quarantine")
    def discard_quarantine(self, input: DiscardQuarantineInput) -> str:
        """Delete the branch if it contains exactly what was released; return the reason if it stays, else ""."""
        for _ in range(_TRIES):
            head = self.catalog.find_head(input.branch)
            if head is None:
                return ""
            if not self._is_what_was_released(input, head):
                return f"{input.branch} was changed meanwhile, so it was not deleted"
            self.catalog.delete_branch_at(input.branch, head)
        return (
            ""
            if self.catalog.find_head(input.branch) is None
            else f"{input.branch} changed during each of {_TRIES} tries to delete it, so it was not deleted"
        )

    def _is_what_was_released(self, input: DiscardQuarantineInput, head: str) -> bool:
        """Return True if only the description changed since the release, for example by `quarantine keep`."""
        name = input.branch
        is_quarantine = name.startswith(PREFIX) and keeps(self.catalog, name, input.head)
        return is_quarantine and not self.catalog.diff(input.head, name, head)
