"""The log context of a worker: each log line names the run, attempt, branch and activity that it belongs to."""

import contextvars
import logging
import time
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

_log = logging.getLogger("sluice.activity")
_CONTEXT: contextvars.ContextVar[dict[str, str] | None] = contextvars.ContextVar("log_context", default=None)


def log_context() -> dict[str, str]:
    """Return the known fields of the current activity: `run`, `activity`, `branch` and `attempt`."""
    return _CONTEXT.get() or {}


class RunLogContext(Interceptor):
    """Sets the log context for each activity, and logs the activity's duration."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _ContextSetter(next)


class _ContextSetter(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        fields = {"run": info.workflow_run_id or "", "activity": info.activity_type, **input_fields(input.args)}
        token = _CONTEXT.set(fields)
        start = time.monotonic()
        try:
            result = await super().execute_activity(input)
            _log.info("%s done in %.2f s", info.activity_type, time.monotonic() - start)
            return result
        finally:
            _CONTEXT.reset(token)


def input_fields(args: Any) -> dict[str, str]:
    """Return the branch and attempt of an activity's input of any type."""
    input = args[0] if args else None
    input = getattr(input, "audit", input)
    run_ref, branch = getattr(input, "run_ref", None), getattr(input, "branch", "")
    name = getattr(branch, "name", branch) or getattr(run_ref, "branch", "")
    attempt = getattr(run_ref, "attempt", None)
    return {"branch": str(name), **({"attempt": str(attempt)} if attempt else {})}


class RunLogFilter(logging.Filter):
    """Adds the log context to each record, as its attribute `log_context`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; keep every record."""
        record.log_context = log_context()
        return True
