"""Definition and execution of activity calls: each is one row of the table in `activity_calls.py`."""

import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, TypeVar, overload

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.references import BranchRequest
    from sluice.contracts.run_request import Policy
    from sluice.identifiers import spark_queue

InputT = TypeVar("InputT")
ResultT = TypeVar("ResultT")
Timeout = Callable[[Policy, Any], float]
"""Function that returns a time-out in seconds, from the run's policy and the activity's input."""


class Kind(Enum):
    """The kind of execution of an activity."""

    ACTIVITY = "an activity"
    LOCAL_FIRST = "a local activity; if that fails or takes long, an activity"
    LONG = "an activity that reports progress"
    SPARK = "an activity that reports progress, on the task queue of Spark, where it waits for a worker"


def fixed(value: float) -> Timeout:
    """Return a time-out that does not depend on the policy."""
    return lambda policy, input: value


def activity_timeout(policy: Policy, _: object) -> float:
    """Return the time-out of one try of a short activity, in seconds."""
    return policy.activity_timeout


def step_timeout(policy: Policy, _: object) -> float:
    """Return the time-out for an unavailable service in the middle of a run, and for a scan, in seconds."""
    return policy.step_timeout


_LOCAL_TIMEOUT = timedelta(seconds=5)
"""Time-out of the local try of a `LOCAL_FIRST` activity."""
ONCE = RetryPolicy(maximum_attempts=1)
_UNTIL_TIMEOUT = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10))
_MAX_FAIRNESS_KEY = 64
_WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
"""A cancelled run waits for the end of its activity, because compensation must not begin while Spark still writes."""


@dataclass(frozen=True)
class ActivityCall(Generic[InputT, ResultT]):
    """One row of the table, which defines an activity call. As an attribute of an `ActivityCaller`, it is a method."""

    name: str
    input: type[InputT]
    result: type[ResultT]
    kind: Kind
    summary: Callable[[InputT], str]
    """The activity's summary in the Temporal Web UI."""
    timeout: Timeout = activity_timeout
    """Time-out of one try (start to close)."""
    total_timeout: Timeout | None = step_timeout
    """Time-out of all tries together (schedule to close). If it is None, the policy limits the wait for a worker."""
    retry: RetryPolicy = field(default_factory=lambda: _UNTIL_TIMEOUT)
    on_cancel: ActivityCancellationType = _WAIT
    priority: int | None = None
    """Temporal's priority key: activities with a lower number get a worker first. The default is 3."""

    @overload
    def __get__(self, calls: None, owner: type) -> "ActivityCall[InputT, ResultT]": ...
    @overload
    def __get__(self, calls: "ActivityCaller", owner: type) -> Callable[[InputT], Coroutine[Any, Any, ResultT]]: ...
    def __get__(self, calls: "ActivityCaller | None", owner: type) -> Any:
        return self if calls is None else lambda input: calls.execute(self, input)


class ActivityCaller:
    """A caller of activities as defined by their rows of the table, with the policy of one run."""

    def __init__(self, policy: Policy | None = None, pipeline: str = "") -> None:
        self._policy = policy or Policy()
        self._pipeline = pipeline

    async def execute(self, call: ActivityCall[InputT, ResultT], input: InputT) -> ResultT:
        """Run one activity as defined by its row of the table.

        A local activity needs no round trip through the server. If it fails, an activity with the long time-outs
        follows, so that failures are visible in the Web UI. The local try may still be running then, which is safe
        because these activities are idempotent.
        """
        if call.kind is Kind.LOCAL_FIRST:
            try:
                return await workflow.execute_local_activity(  # type: ignore[no-any-return]
                    call.name,
                    _with_time(input),
                    result_type=call.result,
                    start_to_close_timeout=_LOCAL_TIMEOUT,
                    retry_policy=ONCE,
                    cancellation_type=call.on_cancel,
                    summary=call.summary(input),
                )
            except FailureError as error:  # the failure itself, not wrapped in an ActivityError
                if is_cancelled_exception(error):
                    raise
        policy = self._policy
        return await workflow.execute_activity(  # type: ignore[no-any-return]
            call.name,
            input,
            result_type=call.result,
            task_queue=_spark_queue(policy) if call.kind is Kind.SPARK else None,
            schedule_to_start_timeout=None if call.total_timeout else timedelta(seconds=policy.wait_timeout),
            start_to_close_timeout=timedelta(seconds=call.timeout(policy, input)),
            schedule_to_close_timeout=_seconds(call.total_timeout, policy, input),
            heartbeat_timeout=timedelta(seconds=policy.heartbeat_timeout),
            retry_policy=call.retry,
            cancellation_type=call.on_cancel,
            summary=call.summary(input),
            priority=self._priority(call),
        )

    def _priority(self, call: ActivityCall[Any, Any]) -> Priority:
        """Return the priority of an activity in the task queue. Equal priorities alternate between pipelines.

        A server that supports neither priorities nor fairness keys starts activities in order of arrival.
        """
        return Priority(priority_key=call.priority, fairness_key=fairness_key(self._pipeline))


def _with_time(input: InputT) -> InputT:
    """Return the input with the time of the request, if it requests a branch."""
    if isinstance(input, BranchRequest):
        return input.model_copy(update={"requested_at": workflow.now().timestamp()})
    return input


def fairness_key(pipeline: str) -> str | None:
    """Return Temporal's fairness key of a pipeline, of at most 64 bytes."""
    if len(pipeline) > _MAX_FAIRNESS_KEY:
        return hashlib.sha256(pipeline.encode()).hexdigest()
    return pipeline or None


def _spark_queue(policy: Policy) -> str:
    return policy.spark_queue or spark_queue(workflow.info().task_queue)


def _seconds(timeout: Timeout | None, policy: Policy, input: object) -> timedelta | None:
    return timedelta(seconds=timeout(policy, input)) if timeout else None
