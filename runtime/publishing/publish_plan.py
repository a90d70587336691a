"""The guarantee of a run's publish, queried before the run starts."""

import asyncio
from collections.abc import Collection

from temporalio.client import Client

from runtime.short_workflow import query_lake
from sluice.contracts.load_order import ANY_ORDER, LoadOrder
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.errors import ServiceUnavailable
from sluice.pipeline.model import Pipeline
from sluice.publishing.bad_rows import with_quarantine_tables
from sluice.publishing.older_rows import may_be_older
from sluice.setting_groups import InstallationSettings

_ANSWER_WITHIN = 10.0
"""Time that a worker has for the answer after SLUICE_WORKER_WAIT, in seconds."""


async def plan_publish(
    client: Client,
    settings: InstallationSettings,
    pipeline: Pipeline,
    tables: Collection[str] | None = None,
    order: LoadOrder = ANY_ORDER,
) -> PublishPlan:
    """Return the guarantee of a run's publish. A single table needs no query, unless its rows may be too old.

    Args:
        tables: tables that the run may change; None means the pipeline's tables and their quarantine tables.
        order: age of the run's rows; main may have younger ones.

    Raises:
        InvalidPipeline: the catalog cannot publish these tables as the pipeline requires, or the rows are older than
            those that they would replace.
        ServiceUnavailable: no worker answers.
    """
    changed = list(with_quarantine_tables(pipeline.tables) if tables is None else tables)
    asks_main = may_be_older(order, pipeline.write, pipeline.tables)
    if len(changed) <= 1 and not asks_main:
        return PublishPlan(guarantee="atomic")
    query = PlanPublishInput(
        tables=changed,
        allow_partial=pipeline.publish.allow_partial,
        pipeline=pipeline.name,
        write=pipeline.write if asks_main else None,
        order=order,
    )
    return await ask_plan(client, settings, query)


async def ask_plan(client: Client, settings: InstallationSettings, query: PlanPublishInput) -> PublishPlan:
    """Return the answer of a worker to a query about a publish.

    Raises:
        InvalidPipeline: the publish is refused.
        ServiceUnavailable: no worker answers.
    """
    limit = settings.sluice_worker_wait + _ANSWER_WITHIN
    try:
        return await asyncio.wait_for(query_lake(client, settings, query, PublishPlan), limit)
    except asyncio.TimeoutError as error:
        raise ServiceUnavailable(f"no worker answered in {limit:g} s") from error
