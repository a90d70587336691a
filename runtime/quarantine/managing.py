"""Discard or keep a quarantined branch, in the same way for the command line and the page."""

from datetime import datetime, timedelta, timezone

from temporalio.client import Client

from runtime.short_workflow import execute_short_workflow, query_lake
from sluice.contracts.quarantine import ManageQuarantineInput, QuarantineAction
from sluice.contracts.quarantine_queries import ListQuarantineInput, ListQuarantineResult, QuarantineSummary
from sluice.durations import seconds
from sluice.setting_groups import InstallationSettings
from workflows.quarantine.manage_quarantine import ManageQuarantine


async def find_quarantine(client: Client, settings: InstallationSettings, run: str) -> QuarantineSummary:
    """Return the only quarantine of a run, a branch or a pipeline.

    Raises:
        InvalidPipeline: there is none, or there are several.
        ServiceUnavailable: no worker answers.
    """
    listed = await query_lake(client, settings, ListQuarantineInput(run=run), ListQuarantineResult)
    (entry,) = listed.quarantined
    return entry.summary


def end_of_retention(how_long: str) -> str:
    """Return the time after a duration from now, in ISO 8601.

    Raises:
        ValueError: it is not a duration.
    """
    until = datetime.now(timezone.utc) + timedelta(seconds=seconds(how_long))
    return until.isoformat(timespec="seconds")


async def manage_quarantine(
    client: Client,
    settings: InstallationSettings,
    quarantine: QuarantineSummary,
    action: QuarantineAction,
    by: str,
    until: str = "",
) -> str:
    """Discard or keep a quarantine that a person was shown. Return its branch, or "" if it was deleted.

    Args:
        until: new end of its retention, in ISO 8601.

    Raises:
        InvalidPipeline: it changed since it was shown, or belongs to another installation.
        ServiceUnavailable: no worker answers, or the outcome is not known.
    """
    request = ManageQuarantineInput(action=action, branch=quarantine.branch, head=quarantine.head, by=by, until=until)
    name = f"{action}-quarantine-{quarantine.run_id}"
    left: str = await execute_short_workflow(client, settings, ManageQuarantine.run, request, name)
    return left
