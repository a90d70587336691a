"""What every line of a worker's log says of the run that it is about."""

import contextvars
import logging
import time
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

_log = logging.getLogger("sluice.activity")
_ABOUT: contextvars.ContextVar[dict[str, str] | None] = contextvars.ContextVar("about", default=None)


def about() -> dict[str, str]:
    """Return what is known of the run that is worked on here: `run`, `attempt`, `branch`, `act`."""
    return _ABOUT.get() or {}


class RunLogContext(Interceptor):
    """Notes, for each act, which run, attempt and branch it is about."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap what runs an act."""
        return _Noting(next)


class _Noting(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        found = {"run": info.workflow_run_id or "", "act": info.activity_type, **_of_order(input.args)}
        token = _ABOUT.set(found)
        began = time.monotonic()
        try:
            answer = await super().execute_activity(input)
            _log.info("%s done in %.2f s", info.activity_type, time.monotonic() - began)
            return answer
        finally:
            _ABOUT.reset(token)


def _of_order(args: Any) -> dict[str, str]:
    """Read attempt and branch off an order, whatever its shape."""
    order = args[0] if args else None
    order = getattr(order, "audit", order)
    run_ref, branch = getattr(order, "origin", None), getattr(order, "branch", "")
    if isinstance(order, str):
        branch = order
    name = getattr(branch, "name", branch) or getattr(run_ref, "branch", "")
    attempt = getattr(run_ref, "attempt", None)
    return {"branch": str(name), **({"attempt": str(attempt)} if attempt else {})}


class RunLogFilter(logging.Filter):
    """Puts what is known of the run on each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; keep every record."""
        record.about = about()
        return True
