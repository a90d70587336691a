"""The progress of a Spark job, as each heartbeat sends it."""

from sluice.base_model import Model


class Progress(Model):
    """How far a Spark job is."""

    doing: str = "starting Spark"
    """What the job does now."""
    stage: int | None = None
    tasks_done: int = 0
    tasks_running: int = 0
    tasks: int = 0

    @property
    def text(self) -> str:
        """The progress as a person reads it."""
        if self.stage is None:
            return self.doing
        return f"{self.doing}: stage {self.stage}, {self.tasks_done} of {self.tasks} tasks"
