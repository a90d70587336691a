"""Inputs and results of the activities that quarantine a branch, manage quarantines, and reap orphan branches."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.references import BranchRef


class QuarantineBranchInput(Model):
    """Input of `quarantine_branch`: keep what a branch holds, under a name with pipeline, date and run."""

    branch: BranchRef
    head: str = ""
    """The hash to keep; empty means the head of the branch, if it changed any table."""
    name: str
    properties: dict[str, str] = Field(default_factory=dict)
    """The properties of the commit that explains why the branch is kept, and until when."""


class ManageQuarantineInput(Model):
    """Input of `manage_quarantine`: a person's request about a quarantined branch."""

    action: Literal["discard", "keep"]
    """Delete it, or keep it until another day."""
    branch: str
    by: str
    until: str = ""
    """Until when it is to be kept, in ISO 8601."""


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
    kept: int = 0
    """How many quarantines exist."""
    kept_bytes: int = 0
    """The size of data files that only quarantines hold."""
    freed_bytes: int = 0
    """The size of data files that only expired quarantines held: the catalog's garbage collection deletes them."""
