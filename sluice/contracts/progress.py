"""Progress of a Spark job, sent with each heartbeat, and the activities that send it."""

from sluice.base_model import WireMessage

ON_SPARK = frozenset({"write_table", "scan_branch", "quarantine_rows", "examine_spark"})
"""Names of the activities that run Spark, for clients that do not import the table of activity calls."""


class Progress(WireMessage):
    """Progress of a Spark job."""

    doing: str = "starting Spark"
    """Current step of the job."""
    stage: int | None = None
    tasks_done: int = 0
    tasks_running: int = 0
    tasks: int = 0

    @property
    def text(self) -> str:
        """Progress as a text for people."""
        if self.stage is None:
            return self.doing
        return f"{self.doing}: stage {self.stage}, {self.tasks_done} of {self.tasks} tasks"
