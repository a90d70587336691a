"""Check before an activity that the catalog is still the one that the run began with.

One interceptor of the worker does this for all activities. An input that is a `CatalogMessage` names the expected
catalog. It is compared with the catalog of the object that the activity is a method of, because a run that publishes to
another branch than main uses other objects (`activities/run/target_catalog.py`).
"""

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import Any, Protocol, cast

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from lakehouse.catalog import BranchCatalog
from sluice.contracts.references import CatalogMessage


class WithCatalog(Protocol):
    """Object with an activity whose input is a `CatalogMessage`."""

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog that the activity works on."""


class CatalogIdentity(Interceptor):
    """Interceptor that refuses an activity on another catalog than its input names.

    It comes after an interceptor that replaces activities, and before the one that maps errors.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _Checked(next)


class _Checked(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await super().execute_activity(replace(input, fn=with_checked_catalog(input.fn)))


def with_checked_catalog(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an activity so that it raises `CatalogChanged` on another catalog than its input names."""
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def run_async(*args: Any) -> Any:
            if _expected_catalog(args) is not None:
                await asyncio.to_thread(_check_catalog, method, args)
            return await method(*args)

        return run_async

    @functools.wraps(method)
    def run(*args: Any) -> Any:  # in the thread of the activity, because the catalog may be slow
        _check_catalog(method, args)
        return method(*args)

    return run


def _expected_catalog(args: tuple[Any, ...]) -> str | None:
    message = args[0] if args else None
    return message.expected_catalog if isinstance(message, CatalogMessage) else None


def _check_catalog(method: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Compare the catalog of a bound method with the one that its input names, if it names one.

    Raises:
        CatalogChanged: it is another catalog, or it lost its data.
    """
    if (expected := _expected_catalog(args)) is not None:
        owner = cast(WithCatalog, cast(MethodType, method).__self__)
        owner.catalog.check_identity(expected)
