"""Inputs and results of the activities that quarantine a branch, manage quarantines, and reap orphan branches."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.references import BranchRef
from sluice.contracts.write import ChangedTable


class VerifiedWrite(Model):
    """What a verified write holds. The commit of a quarantine records it, so that a release can verify it again."""

    head: str
    """The hash that was verified."""
    attempt: int = Field(ge=1)
    """The attempt that holds the write: its snapshots are of this run, and of this attempt or an earlier one."""
    tables: dict[str, int] = Field(min_length=1)
    """By table, the rows that were added less those that were deleted."""
    appends: bool = False
    """Whether its files may be added to a newer main: what they hold does not depend on the older one."""
    rows_quarantined: bool = False
    """Whether bad rows were moved to quarantine tables."""
    runs: dict[str, int] = Field(default_factory=dict)
    """By run, its last attempt, where several runs made the write; empty where it is of the quarantined run alone."""

    def makers(self, run_id: str) -> list[tuple[str, range]]:
        """Return the runs whose snapshots it holds, each with the attempts that may have made them.

        Args:
            run_id: the quarantined run.
        """
        runs = self.runs or {run_id: self.attempt}
        return [(each, range(1, attempt + 1)) for each, attempt in runs.items()]


class QuarantineBranchInput(Model):
    """Input of `quarantine_branch`: keep what a branch holds, under a name with pipeline, date and run."""

    branch: BranchRef
    head: str = ""
    """The hash to keep; empty means the head of the branch, if it changed any table."""
    name: str
    properties: dict[str, str] = Field(default_factory=dict)
    """The properties of the commit that explains why the branch is kept, and until when."""
    versions: dict[str, ChangedTable] = Field(default_factory=dict)
    """By table, what the branch held, if it was verified: the branch may be fenced, and so deleted, already."""


class ManageQuarantineInput(Model):
    """Input of `manage_quarantine`: a person's request about a quarantined branch."""

    action: Literal["discard", "keep"]
    """Delete it, or keep it until another day."""
    branch: str
    head: str = ""
    """The commit of the branch that the person was shown. Empty accepts any: programs name a branch alone."""
    by: str
    until: str = ""
    """Until when it is to be kept, in ISO 8601."""


class DiscardQuarantineInput(Model):
    """Input of `discard_quarantine`: delete a quarantined branch whose rows a release has published."""

    branch: str
    head: str
    """The hash that was released."""
    catalog_id: str
    """The catalog that the release saw."""


class ReapBranchesInput(Model):
    """Input of `reap_branches`."""

    grace: float = 3600.0
    """The reaper ignores a branch whose last commit is younger than so many seconds."""


class ReapBranchesResult(Model):
    """What the reaper did, and the quarantines that remain."""

    deleted: list[str] = Field(default_factory=list)
    """Deleted orphan branches: empty, or published."""
    quarantined: list[str] = Field(default_factory=list)
    """The new names of orphan branches that hold rows: they are quarantined."""
    expired: list[str] = Field(default_factory=list)
    """Expired quarantines, which were deleted."""
    unrecognized: list[str] = Field(default_factory=list)
    """Branches named like an attempt's whose commits name no run: the reaper ignores them."""
    in_use: list[str] = Field(default_factory=list)
    """Expired quarantines that a release works on: they are kept until it has ended."""
    failed: dict[str, str] = Field(default_factory=dict)
    """By branch, why the reaper could not deal with it. The first hundred; `failures` counts all."""
    failures: int = 0
    """How many branches it could not deal with. They are left for the next round."""
    other_installations: dict[str, int] = Field(default_factory=dict)
    """By installation, how many branches are of another one. Their own reapers deal with them."""
    kept: int = 0
    """How many quarantines exist."""
    kept_bytes: int = 0
    """The size of data files that only quarantines hold."""
    freed_bytes: int = 0
    """The size of data files that only expired quarantines held: the catalog's garbage collection deletes them."""
