"""Find starts that would load files of a deployed landing zone past the zone."""

from collections.abc import Sequence

from temporalio.client import Client

from runtime.arrivals.landing_zones import list_zones, zone_memos
from runtime.arrivals.zone_conflicts import zone_of
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.placeholders import partition_values
from sluice.setting_groups import InstallationSettings


async def find_zone_problems(client: Client, settings: InstallationSettings, pipeline: Pipeline) -> list[str]:
    """Return why a manual run should not load the source of a pipeline: another pipeline's zone has its files.

    Args:
        pipeline: a pipeline with absolute paths.
    """
    zones = [zone_of(memo["name"], memo["properties"]) async for memo in zone_memos(client, settings)]
    return list(filter(None, (zone.problem_with_source(pipeline) for zone in zones)))


async def refuse_start_past_zone(client: Client, settings: InstallationSettings, pipeline: str) -> None:
    """Check that no landing zone of a pipeline is deployed: the zone alone loads its files.

    Raises:
        InvalidPipeline: it is deployed.
    """
    if pipeline in await list_zones(client, settings):
        raise InvalidPipeline(
            f"the landing zone of {pipeline!r} is deployed, and loads its files: `arrivals {pipeline} --load "
            f"FILE...` loads files through it, also after a roll-back; `arrivals {pipeline}` shows each file"
        )


async def refuse_backfill(
    client: Client, settings: InstallationSettings, stated: PipelineText, partitions: Sequence[str]
) -> None:
    """Check that no partition of a backfill has files in a landing zone that loads into the same table.

    Raises:
        InvalidPipeline: a partition has such files.
    """
    zones = [zone_of(memo["name"], memo["properties"]) async for memo in zone_memos(client, settings)]
    for partition in partitions if zones else ():
        pipeline = pipeline_of_text(stated, partition_values(partition))
        if problems := [problem for zone in zones if (problem := zone.problem_with_source(pipeline))]:
            raise InvalidPipeline("\n".join(problems))
