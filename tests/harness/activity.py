"""Run an activity outside of a worker, with its catalog checked and its errors mapped as in a worker."""

from collections.abc import Callable
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.catalog_identity import with_checked_catalog
from activities.errors import with_mapped_errors


def run_activity(activity: Callable[..., Any], *inputs: Any) -> Any:
    """Return the result of an activity, or the coroutine of an async one.

    Raises:
        ApplicationError: the activity failed.
    """
    return ActivityEnvironment().run(with_mapped_errors(with_checked_catalog(activity)), *inputs)
