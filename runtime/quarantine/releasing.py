"""Plan the release or repair of a quarantine, in the same way for the command line and the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from temporalio.client import Client

from runtime.pipeline.pipeline_input import pipeline_of_text
from runtime.run.run_request import read_backfill, read_request
from runtime.run.start_run import StartOptions
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import PlanReleaseInput, ReleasePlan
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.contracts.run_request import RunInput
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.placeholders import values_of_all
from sluice.pipeline.write import Write
from sluice.publishing.release import choose_pipeline, release_workflow_id
from sluice.setting_groups import InstallationSettings
from sluice.validation_errors import plain_message


@dataclass(frozen=True)
class PlannedRelease:
    """A run that audits quarantined rows again and publishes them, before its start."""

    plan: ReleasePlan
    pipeline: Pipeline
    """Pipeline whose checks audit the rows."""

    @property
    def quarantine(self) -> QuarantineSummary:
        """The quarantine, as it was when the release was planned."""
        return self.plan.summary

    @property
    def run_input(self) -> RunInput | None:
        """Input of the quarantined run; None if the quarantine does not record it."""
        plan = self.plan
        return RunInput(digest=plan.input_digest, scope=plan.scope) if plan.input_digest else None

    @property
    def options(self) -> StartOptions:
        """Options of the start."""
        return StartOptions(resume=self.plan.resume, order=LoadOrder(partition=self.plan.partition))


async def plan_release(
    client: Client, settings: InstallationSettings, query: PlanReleaseInput, given: Pipeline | None = None
) -> PlannedRelease:
    """Plan a release or a repair.

    Args:
        given: the pipeline that a person named; None means that of the quarantined run.

    Raises:
        InvalidInput: the quarantine may not be released.
        InvalidPipeline: there is no such quarantine, or its pipeline is not known.
        ServiceUnavailable: no worker answers.
    """
    plan = await query_lake(client, settings, query, ReleasePlan)
    workflow_id, run_id = plan.summary.workflow_id, plan.summary.run_id
    earlier = await read_request(client, workflow_id, run_id)
    pipeline = earlier.pipeline if earlier else None
    if earlier is None and (backfill := await read_backfill(client, workflow_id, run_id)):
        values = values_of_all(backfill.progress.partitions)  # the quarantine is that of a joint publish
        pipeline = await _pipeline_of_whole(client, plan, pipeline_of_text(backfill.pipeline, values))
        plan = plan.model_copy(update={"partition": values["partition"]})
    return PlannedRelease(plan, choose_pipeline(plan.summary, pipeline, given))


async def _pipeline_of_whole(client: Client, plan: ReleasePlan, first: Pipeline) -> Pipeline | None:
    """Return the pipeline with which a backfill collected its partitions, or None if it is not known.

    Args:
        first: the pipeline with which the backfill began. A person may have edited it while the backfill was paused.
    """
    if plan.pipeline_digest in ("", first.digest):
        return first
    publishing = release_workflow_id(plan.summary.pipeline, plan.resume.branch, plan.resume.head)
    request = await read_request(client, publishing)
    return request.pipeline if request and request.pipeline.digest == plan.pipeline_digest else None


def repair_statements(statements: Sequence[str]) -> list[str]:
    """Return the statements of a repair without comments.

    Raises:
        InvalidPipeline: a statement is not SQL that changes tables.
    """
    try:
        return Write(mode="sql", statements=list(statements)).statements
    except ValidationError as error:
        problems = (plain_message(each) for each in error.errors())
        raise InvalidPipeline("; ".join(problems)) from error
