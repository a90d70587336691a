"""The catalog of a run that publishes to another branch than main: that branch is its `main`.

Each activity is an object with its catalog. For such a run the same activity is made once more, with a catalog that was
opened for that branch, so that no code of an activity asks which branch is meant, and none of it can reach main.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.errors import as_application_error
from sluice.contracts.references import TARGET_HEADER
from sluice.errors import InvalidPipeline
from sluice.identifiers import is_backfill_branch

Activity = Callable[..., Any]
MakeActivities = Callable[[str], Iterable[Activity]]


class TargetCatalog(Interceptor):
    """Exchanges an activity for the same one with the catalog of the branch that its header names."""

    def __init__(self, make_activities: MakeActivities) -> None:
        """Prepare nothing yet.

        Args:
            make_activities: returns the activities of this worker for a branch to publish to.
        """
        self._make = make_activities
        self._made: dict[str, dict[str, Activity]] = {}

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _Exchanged(next, self.activity_for)

    def activity_for(self, target: str, name: str) -> Activity:
        """Return the activity of this name for a branch.

        Raises:
            InvalidPipeline: backfills collect nothing on a branch of this name.
        """
        if not is_backfill_branch(target):
            raise InvalidPipeline(f"no run publishes to the branch {target!r}")
        if target not in self._made:
            self._made[target] = {each.__name__: each for each in self._make(target)}
        return self._made[target][name]


class _Exchanged(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, activity_for: Callable[[str, str], Activity]) -> None:
        super().__init__(next)
        self._activity_for = activity_for

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if header := input.headers.get(TARGET_HEADER):
            with as_application_error():
                target = self._activity_for(header.data.decode(), activity.info().activity_type)
            input = replace(input, fn=target)
        return await super().execute_activity(input)
