"""The catalog of a run that publishes to another branch than main. That branch is the `main` of this catalog.

Each activity is an object with its catalog. For such a run, an interceptor uses a second object of the same activity,
with a catalog opened for that branch. So the code of activities does not distinguish the branches, and cannot reach
main.
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
    """Interceptor that replaces an activity by the same one with the catalog of the branch in its header."""

    def __init__(self, make_activities: MakeActivities) -> None:
        """Create the interceptor. It makes the activities of a branch at their first use.

        Args:
            make_activities: a function that returns the activities of this worker for a branch to publish to.
        """
        self._make = make_activities
        self._made: dict[str, dict[str, Activity]] = {}

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _Exchanged(next, self.activity_for)

    def activity_for(self, target: str, name: str) -> Activity:
        """Return the activity of this name for a branch.

        Raises:
            InvalidPipeline: this is not the name of a backfill's branch.
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
