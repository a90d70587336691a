"""What decides whether rows of a run may take the place of rows that main holds."""

from pydantic import Field

from sluice.base_model import Model


class LoadOrder(Model):
    """How old the rows of a run are, as far as that is known."""

    partition: str = ""
    """The partition that it loads, or the time that it is scheduled for; empty where it has neither."""
    runs: list[str] = Field(default_factory=list)
    """For a requeue: the runs that quarantined the rows. Runs that changed the table after them are younger."""
    over_younger: bool = False
    """Whether its rows may take the place of younger ones."""


ANY_ORDER = LoadOrder()
"""Of a run whose rows are as young as any."""
