"""Start runs for the person of the page: once for each state that a form was shown with."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from runtime.publishing.publish_plan import plan_publish
from runtime.run.find_run import describe_run
from runtime.run.start_run import StartOptions, start_run, workflow_id_of
from sluice.contracts.run_request import RunInput
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from web.page import Page


@dataclass(frozen=True)
class LatestStart:
    """The latest run with a workflow id. All releases of one quarantine have one workflow id, for example."""

    workflow_id: str
    run_id: str
    is_running: bool

    @property
    def path(self) -> str:
        """Address of its page."""
        return f"/runs/{self.workflow_id}/{self.run_id}"


async def latest_start(page: Page, workflow_id: str) -> LatestStart | None:
    """Return the latest run with a workflow id; None if there is no such run."""
    run = await describe_run(page.client, workflow_id, None)
    return LatestStart(workflow_id, run.description.run_id, not run.ended) if run else None


async def start_shown(
    page: Page,
    pipeline: Pipeline,
    run_input: RunInput | None,
    options: StartOptions,
    shown_latest: str,
    tables: Collection[str] | None = None,
    folder: str = "",
) -> str:
    """Start a run, or attach to the one that the same form or a command started. Return the address of its page.

    Args:
        shown_latest: run id of the latest such run when the form was shown; empty if there was none.
        tables: the tables that the run may change; None means those of the pipeline and their quarantine tables.
        folder: the folder in which a job of the user runs, if it is not that of the page.

    Raises:
        InvalidPipeline: such a run started and ended since, or the catalog cannot publish the tables as required.
        RunUnderWay: the run under way does something else.
        ServiceUnavailable: no worker answers.
    """
    workflow_id = workflow_id_of(pipeline, run_input, options)
    latest = await latest_start(page, workflow_id)
    if latest and not latest.is_running and latest.run_id != shown_latest:
        raise InvalidPipeline(f"{workflow_id} started and ended since this page was opened. Read its result first")
    plan = await plan_publish(page.client, page.installation, pipeline, tables, options.checked_order)
    guaranteed = replace(options, guarantee=plan.guarantee)
    starter = page.starter()
    if folder:
        starter = replace(starter, working_directory=Path(folder))
    started = await start_run(page.client, page.settings, pipeline, run_input, starter, guaranteed)
    page.board.forget()
    run_id = started.handle.run_id or started.handle.first_execution_run_id or ""
    return f"/runs/{started.handle.id}/{run_id}"
