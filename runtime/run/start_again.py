"""Start an ended run again from its request, without the files of its pipeline."""

from temporalio.client import Client

from runtime.arrivals.conflicting_starts import find_zone_problems, refuse_start_past_zone
from runtime.run.start_run import StartOptions
from sluice.contracts.run_request import RunRequest
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.setting_groups import InstallationSettings


def options_of(request: RunRequest) -> StartOptions:
    """Return the options that a run was started with."""
    return StartOptions(
        again=request.again,
        publish=request.publish,
        one_content_per_path=request.one_content_per_path,
        loads_all_contents=request.loads_all_contents,
        order=request.order,
    )


async def check_past_zones(client: Client, settings: InstallationSettings, pipeline: Pipeline) -> None:
    """Check that a start loads no files past a deployed landing zone.

    Raises:
        InvalidPipeline: the start would load such files.
    """
    await refuse_start_past_zone(client, settings, pipeline.name)
    if problems := await find_zone_problems(client, settings, pipeline):
        raise InvalidPipeline("; ".join(problems))
