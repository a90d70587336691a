"""Inputs and results of the activities that quarantine a branch, manage quarantines, and reap orphan branches."""

from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.references import BranchMessage, CatalogIdMessage
from sluice.contracts.write import ChangedTable

QuarantineAction = Literal["discard", "keep"]


class VerifiedWrite(WireMessage):
    """Content of a verified write. The commit of a quarantine records it, so that a release can verify it again."""

    head: str
    """Hash that was verified."""
    attempt: int = Field(ge=1)
    """Attempt that contains the write. Its snapshots are of this run, and of this attempt or an earlier one."""
    tables: dict[str, int] = Field(min_length=1)
    """Number of added rows less the deleted ones, by table."""
    appends: bool = False
    """True if its files may be added to a newer main, because their content does not depend on the older one."""
    rows_quarantined: bool = False
    """True if bad rows were moved to quarantine tables."""
    runs: dict[str, int] = Field(default_factory=dict)
    """Last attempt of each run, if several runs made the write; empty if only the quarantined run did."""

    def makers(self, run_id: str) -> list[tuple[str, range]]:
        """Return the runs whose snapshots the write contains, each with the attempts that may have made them.

        Args:
            run_id: the quarantined run.
        """
        runs = self.runs or {run_id: self.attempt}
        return [(each, range(1, attempt + 1)) for each, attempt in runs.items()]


class QuarantineBranchInput(BranchMessage):
    """Input of `quarantine_branch`: keep the content of a branch, under a name with pipeline, date and run."""

    head: str = ""
    """Hash to keep; empty means the head of the branch, if it changed any table."""
    name: str
    properties: dict[str, str] = Field(default_factory=dict)
    """Properties of the commit that records the reason for the quarantine and the end of its retention."""
    versions: dict[str, ChangedTable] = Field(default_factory=dict)
    """Verified versions of the tables on the branch, by table. The branch may already be fenced, and so deleted."""


class ManageQuarantineInput(WireMessage):
    """Input of `manage_quarantine`: a person's request about a quarantined branch."""

    action: QuarantineAction
    """`discard` deletes the branch; `keep` changes the day until which it is kept."""
    branch: str
    head: str = ""
    """Commit of the branch that the person was shown. Empty accepts any, since programs name only a branch."""
    by: str
    until: str = ""
    """New end of its retention, in ISO 8601."""


class DiscardQuarantineInput(CatalogIdMessage):
    """Input of `discard_quarantine`: delete a quarantined branch whose rows a release has published."""

    branch: str
    head: str
    """Hash that was released."""
    catalog_id: str
    """Catalog that the release used."""


class ReapBranchesInput(WireMessage):
    """Input of `reap_branches`."""

    grace: float = 3600.0
    """Minimum age of a branch's last commit, in seconds. The reaper ignores younger branches."""


class ReapBranchesResult(WireMessage):
    """Result of `reap_branches`: the actions of the reaper, and the remaining quarantines."""

    deleted: list[str] = Field(default_factory=list)
    """Deleted orphan branches, which were empty or published."""
    quarantined: list[str] = Field(default_factory=list)
    """New names of orphan branches that contain rows and are now quarantined."""
    expired: list[str] = Field(default_factory=list)
    """Expired quarantines that were deleted."""
    unrecognized: list[str] = Field(default_factory=list)
    """Branches with the name of an attempt whose commits name no run. The reaper ignores them."""
    in_use: list[str] = Field(default_factory=list)
    """Expired quarantines that a release is using. They are kept until it has ended."""
    failed: dict[str, str] = Field(default_factory=dict)
    """Reason of each failure, by branch. Only the first hundred; `failures` counts all."""
    failures: int = 0
    """Number of branches that the reaper failed to process. They are left for the next round."""
    other_installations: dict[str, int] = Field(default_factory=dict)
    """Number of branches of other installations, by installation. Their own reapers process them."""
    kept: int = 0
    """Number of quarantines that exist."""
    kept_bytes: int = 0
    """Size of data files that only quarantines have, in bytes."""
    freed_bytes: int = 0
    """Size of data files that only expired quarantines had, in bytes. The catalog's garbage collection deletes them."""
