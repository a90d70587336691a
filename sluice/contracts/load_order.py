"""Age of the rows of a run, which decides whether they may replace rows on main."""

from pydantic import Field

from sluice.base_model import WireMessage


class LoadOrder(WireMessage):
    """Age of the rows of a run, as far as it is known."""

    partition: str = ""
    """Partition that the run loads, or its scheduled time; empty if it has neither."""
    runs: list[str] = Field(default_factory=list)
    """Runs that quarantined the rows of a requeue. Runs that changed the table after them are younger."""
    files_of_runs: list[str] = Field(default_factory=list)
    """Runs that quarantined the rows of a requeue, if only later loads of other content of their files matter."""
    over_younger: bool = False
    """True if its rows may replace younger ones, or be added although later content may have them already."""


ANY_ORDER = LoadOrder()
"""Order of a run whose rows are as young as any others."""
