"""Release of the quarantine of a backfill's partitions: its pipeline is the one with which they were collected."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest
from pydantic import BaseModel
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.quarantine.plan_release import PlanReleaseActivity
from runtime.pipeline.pipeline_input import pipeline_of_text
from runtime.quarantine.releasing import PlannedRelease, plan_release
from sluice.contracts.backfill import BACKFILL_WORKFLOW, BackfillInput, BackfillState
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.run import RUN_WORKFLOW
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.errors import InvalidPipeline
from sluice.pipeline.placeholders import values_of_all
from sluice.settings import Settings
from tests.harness.joint_backfill import JointBackfill
from tests.harness.lake_client import LakeClient
from tests.harness.loading_run import Folder
from tests.harness.memory_catalog import MemoryCatalog

MONTHS = ["2018-01", "2018-02"]


class History(LakeClient):
    """A client whose server has the history of a backfill, and that of the run which published its partitions."""

    def __init__(self, release: PlanReleaseActivity, begun: BackfillInput, published: RunRequest | None) -> None:
        super().__init__({"plan_release": release.plan_release})
        self._begun, self._published = begun, published

    def get_workflow_handle(self, workflow_id: str, run_id: str | None = None, **_: object) -> SimpleNamespace:
        of_backfill = workflow_id == "w-one"
        started: BaseModel | None = self._begun if of_backfill else self._published

        async def fetch_history_events(**_: object) -> AsyncIterator[HistoryEvent]:
            if started is None:
                raise RPCError("there is no such workflow", RPCStatusCode.NOT_FOUND, b"")
            event = HistoryEvent()
            attributes = event.workflow_execution_started_event_attributes
            attributes.workflow_type.name = BACKFILL_WORKFLOW if of_backfill else RUN_WORKFLOW
            attributes.input.payloads.extend(await self.data_converter.encode([started]))
            yield event

        return SimpleNamespace(fetch_history_events=fetch_history_events)


async def released(folder: Folder, catalog: MemoryCatalog, *, is_edited: bool, is_published: bool) -> PlannedRelease:
    """Collect the months, and plan a release of their quarantine.

    Args:
        is_edited: True if the backfill began with another text of the pipeline.
        is_published: True if a run was started to publish the quarantine.
    """
    backfill = JointBackfill(folder, catalog, "one", {})
    for month in MONTHS:
        folder.file(f"{month}/a.csv", month)
        await backfill.load(month)
    collected = backfill.pipeline
    old = collected.text.replace('"name": "p"', '"name": "p", "description": "old"')
    before = collected.model_copy(update={"text": old})
    begun = BackfillInput(
        pipeline=before if is_edited else collected,
        name="p",
        starter="ana",
        progress=BackfillState(partitions=MONTHS),
    )
    request = RunRequest(
        pipeline=pipeline_of_text(collected, values_of_all(MONTHS)), input=RunInput(digest="0" * 64), starter="ana"
    )
    release = PlanReleaseActivity(folder.lake.catalog, "here", folder.lake.loaded_files)
    client = cast(Client, History(release, begun, request if is_published else None))
    return await plan_release(client, Settings().installation, PlanReleaseInput(run=await backfill.collect()))


@pytest.mark.parametrize(("is_edited", "is_published"), [(False, False), (False, True), (True, True)])
async def test_the_partitions_are_audited_by_the_pipeline_that_collected_them(
    folder: Folder, catalog: MemoryCatalog, is_edited: bool, is_published: bool
) -> None:
    """In an earlier version, a check that a person added while the backfill was paused was not asked."""
    planned = await released(folder, catalog, is_edited=is_edited, is_published=is_published)
    assert planned.pipeline.digest == planned.plan.pipeline_digest
    assert planned.options.order.partition == "2018-01..2018-02"


async def test_a_pipeline_that_is_not_known_is_asked_for(folder: Folder, catalog: MemoryCatalog) -> None:
    with pytest.raises(
        InvalidPipeline, match=r"the file was edited while its backfill ran\. Name the file by --pipeline"
    ):
        await released(folder, catalog, is_edited=True, is_published=False)
