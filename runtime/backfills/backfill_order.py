"""Refuse a backfill if main or a landing zone conflicts with its partitions."""

from temporalio.client import Client

from runtime.arrivals.conflicting_starts import refuse_backfill
from runtime.backfills.backfill_plan import scopes_of
from runtime.pipeline.pipeline_input import pipeline_of_text
from runtime.publishing.publish_plan import ask_plan
from sluice.contracts.backfill import BackfillInput
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import PlanPublishInput
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.loading_rules import is_known_as_a_whole
from sluice.pipeline.placeholders import partition_values
from sluice.publishing.older_rows import may_be_older
from sluice.setting_groups import InstallationSettings


async def refuse_unloadable_partitions(client: Client, settings: InstallationSettings, given: BackfillInput) -> None:
    """Refuse a backfill if one of its partitions would replace younger rows, or load rows twice.

    The run of the partition would be refused later.

    Raises:
        InvalidPipeline: main contains a later partition than one that it lacks.
        InvalidInput: main contains a part of a partition, or a larger one, and its rows would be loaded twice.
        ServiceUnavailable: no worker answers.
    """
    partitions = given.progress.partitions
    order = LoadOrder(partition=partitions[0], over_younger=given.over_younger)
    pipeline = pipeline_of_text(given.pipeline, partition_values(partitions[0]))
    asks_order = may_be_older(order, pipeline.write, pipeline.tables)
    compares_scopes = is_known_as_a_whole(pipeline.write) and not given.again
    if not asks_order and not compares_scopes:
        return
    query = PlanPublishInput(
        tables=list(pipeline.tables),
        allow_partial=pipeline.publish.allow_partial,
        pipeline=pipeline.name,
        write=pipeline.write if asks_order else None,
        partitions=partitions if asks_order else [],
        again=given.again,
        scopes=list(scopes_of(given.pipeline, partitions).values()) if compares_scopes else [],
    )
    await ask_plan(client, settings, query)


async def find_backfill_problem(client: Client, settings: InstallationSettings, given: BackfillInput) -> str:
    """Return why a backfill would be refused at its start; empty if nothing is known.

    Raises:
        ServiceUnavailable: no worker answers.
    """
    try:
        await refuse_backfill(client, settings, given.pipeline, given.progress.partitions)
        await refuse_unloadable_partitions(client, settings, given)
    except (InvalidPipeline, InvalidInput) as error:
        return str(error)
    return ""
