"""Run an activity outside of a worker, with errors mapped as a worker maps them."""

from collections.abc import Callable
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.errors import with_mapped_errors


def run_activity(activity: Callable[..., Any], *inputs: Any) -> Any:
    """Return the result of an activity, or the coroutine of an async one.

    Raises:
        ApplicationError: the activity failed.
    """
    return ActivityEnvironment().run(with_mapped_errors(activity), *inputs)
