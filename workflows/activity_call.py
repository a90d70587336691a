"""How one activity is called: what a row of the table in `activity_calls.py` holds, and what follows from it."""

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
    from sluice.contracts.run import Policy
    from sluice.identifiers import spark_queue

InputT = TypeVar("InputT")
ResultT = TypeVar("ResultT")
Timeout = Callable[[Policy, Any], float]
"""Seconds, by the run's policy and the activity's input."""


class Kind(Enum):
    """How an activity runs."""

    ACTIVITY = "an activity"
    LOCAL_FIRST = "a local activity; if that fails or takes long, an activity"
    LONG = "an activity that reports progress"
    SPARK = "an activity that reports progress, on the task queue of Spark, where it waits for a worker"


def fixed(value: float) -> Timeout:
    """Return a time-out that no policy changes."""
    return lambda policy, input: value


def activity_timeout(policy: Policy, _: object) -> float:
    """Return how long one try of a short activity may take."""
    return policy.activity_timeout


def step_timeout(policy: Policy, _: object) -> float:
    """Return how long a service may be unavailable in the middle of a run, or how long a scan may take."""
    return policy.step_timeout


_LOCAL_TIMEOUT = timedelta(seconds=5)
"""How long the local try of a `LOCAL_FIRST` activity may take."""
ONCE = RetryPolicy(maximum_attempts=1)
_UNTIL_TIMEOUT = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10))
_MAX_FAIRNESS_KEY = 64
_WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
"""A cancelled run waits until the activity has ended: compensation must not begin while Spark still writes."""


@dataclass(frozen=True)
class ActivityCall(Generic[InputT, ResultT]):
    """One row of the table: how one activity is called. As an attribute of an `ActivityCaller` it is a method."""

    name: str
    input: type[InputT]
    result: type[ResultT]
    kind: Kind
    summary: Callable[[InputT], str]
    """The activity's summary in the Temporal Web UI."""
    timeout: Timeout = activity_timeout
    """How long one try may take (start to close)."""
    total_timeout: Timeout | None = step_timeout
    """How long all tries together may take (schedule to close). Without it, the policy limits the wait for a worker."""
    retry: RetryPolicy = field(default_factory=lambda: _UNTIL_TIMEOUT)
    on_cancel: ActivityCancellationType = _WAIT
    priority: int | None = None
    """Where several wait for a worker, those of a lower number are taken first; by default 3."""

    @overload
    def __get__(self, calls: None, owner: type) -> "ActivityCall[InputT, ResultT]": ...
    @overload
    def __get__(self, calls: "ActivityCaller", owner: type) -> Callable[[InputT], Coroutine[Any, Any, ResultT]]: ...
    def __get__(self, calls: "ActivityCaller | None", owner: type) -> Any:
        return self if calls is None else lambda input: calls.execute(self, input)


class ActivityCaller:
    """Calls activities as their rows say, with the policy of one run."""

    def __init__(self, policy: Policy | None = None, pipeline: str = "") -> None:
        self._policy = policy or Policy()
        self._pipeline = pipeline

    async def execute(self, call: ActivityCall[InputT, ResultT], input: InputT) -> ResultT:
        """Run one activity as its row of the table says.

        A local activity costs no round trip through the server. If it fails, an activity follows, with the long
        time-outs, and the failure is visible in the Web UI. The local try may still go on then: these activities are
        idempotent.
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
        """Return the order of an activity where several wait for a worker: it alternates between pipelines.

        A server that knows neither priorities nor fairness keys starts activities in the order in which they came.
        """
        return Priority(priority_key=call.priority, fairness_key=fairness_key(self._pipeline))


def _with_time(input: InputT) -> InputT:
    """Return the input with the time of the request, if it asks for a branch."""
    if isinstance(input, BranchRequest):
        return input.model_copy(update={"requested_at": workflow.now().timestamp()})
    return input


def fairness_key(pipeline: str) -> str | None:
    """Return the key of a pipeline by which Temporal gives turns, which may have 64 bytes."""
    if len(pipeline) > _MAX_FAIRNESS_KEY:
        return hashlib.sha256(pipeline.encode()).hexdigest()
    return pipeline or None


def _spark_queue(policy: Policy) -> str:
    return policy.spark_queue or spark_queue(workflow.info().task_queue)


def _seconds(timeout: Timeout | None, policy: Policy, input: object) -> timedelta | None:
    return timedelta(seconds=timeout(policy, input)) if timeout else None
