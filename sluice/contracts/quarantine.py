"""What is done with branches beside runs: by a person's order, and by the reaper."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model


class ManageQuarantineInput(Model):
    """What a person orders about a quarantined branch."""

    action: Literal["discard", "keep"]
    """Delete it, or keep it until another day."""
    branch: str
    by: str
    until: str = ""
    """Until when it is to be kept, in ISO 8601."""


class ReapBranchesInput(Model):
    """What the reaper does."""

    grace: float = 3600.0
    """A branch that was touched within so many seconds is left alone."""


class ReapBranchesResult(Model):
    """What the reaper found and did."""

    deleted: list[str] = Field(default_factory=list)
    """Branches of attempts that were of no use: empty, published, or of runs that ended."""
    quarantined: list[str] = Field(default_factory=list)
    """What branches are kept as now, whose runs are gone and which hold rows."""
    expired: list[str] = Field(default_factory=list)
    """Quarantines whose time was over."""
    strange: list[str] = Field(default_factory=list)
    """Branches that look like Sluice's and that it cannot tell for its own: left alone."""
    kept: int = 0
    """How many quarantines there are."""
    kept_bytes: int = 0
    """The size of data files that only quarantines hold."""
    freed_bytes: int = 0
    """The size of data files that only the expired held: Nessie's garbage collection removes them."""
