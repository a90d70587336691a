"""Ask a worker, before a backfill starts, if main has partitions that are younger than those to load."""

from temporalio.client import Client

from runtime.pipeline.pipeline_input import pipeline_of_text
from runtime.publishing.publish_plan import ask_plan
from sluice.contracts.backfill import BackfillInput
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import PlanPublishInput
from sluice.errors import ServiceUnavailable
from sluice.pipeline.placeholders import partition_values
from sluice.publishing.older_rows import may_be_older
from sluice.setting_groups import InstallationSettings


async def refuse_older_partitions(client: Client, settings: InstallationSettings, given: BackfillInput) -> None:
    """Refuse a backfill if one of its partitions would replace younger rows, which its run would refuse later.

    If no worker answers, the runs of the partitions decide.

    Raises:
        InvalidPipeline: main contains a later partition than one that it lacks.
    """
    partitions = given.progress.partitions
    order = LoadOrder(partition=partitions[0], over_younger=given.over_younger)
    pipeline = pipeline_of_text(given.pipeline, partition_values(partitions[0]))
    if not may_be_older(order, pipeline.write, pipeline.tables):
        return
    query = PlanPublishInput(
        tables=list(pipeline.tables),
        allow_partial=pipeline.publish.allow_partial,
        pipeline=pipeline.name,
        write=pipeline.write,
        partitions=partitions,
        again=given.again,
    )
    try:
        await ask_plan(client, settings, query)
    except ServiceUnavailable:
        return
