"""The activities that a worker registers, made without a server."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

from temporalio import activity
from temporalio.client import Client

from activities.notifications.open_notifier import open_notifier
from engine.spark.engine import SubmitEngine
from hosting.activities import control_activities, spark_activities
from lakehouse.audit.report_store import ReportStore
from lakehouse.open_catalog import open_catalog
from sluice.registration.targets import NO_TARGETS
from sluice.settings import Settings

Activity = Callable[..., Any]


async def registered() -> tuple[list[Activity], list[Activity]]:
    """Return the activities of a worker for control, and those of a worker for Spark."""
    settings = Settings.of(nessie_uri="http://127.0.0.1:1/api/v2")
    client = cast(Client, SimpleNamespace(namespace="default"))
    catalog, reports = open_catalog(settings), ReportStore(settings.storage.lake, {})
    notifier = open_notifier(settings.notifications)
    control = control_activities(client, settings, catalog, {}, reports, notifier, NO_TARGETS)
    return control, spark_activities(settings, SubmitEngine(settings.spark_jobs), catalog, {}, reports)


def signature(function: Activity) -> tuple[str, list[Any], Any]:
    """Return the name of an activity, the types of its inputs, and the type of its result."""
    name = activity._Definition.must_from_callable(function).name or ""
    hints = get_type_hints(function)
    result = hints.pop("return")
    return name, list(hints.values()), result
