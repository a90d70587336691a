"""A workflow validates its pipeline again where it may read no files: it accepts what the command accepted."""

import asyncio
import uuid
from contextlib import suppress

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from runtime.temporal_client import converter
from sluice.contracts.run_request import Policy, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from sluice.pipeline.time_zones import known_zones
from tests.harness.workflow import FakeActivities, WorkflowHarness
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

OPTIONS = {
    "timeZone": "Europe/Berlin",
    "timestampFormat": "dd.MM.yyyy HH:mm:ss",
    "dateFormat": "dd.MM.yyyy",
    "locale": "de-DE",
    "encoding": "ISO-8859-1",
    "nullValue": "NA",
}


@pytest.mark.parametrize("schedule", [None, {"cron": "0 5 * * *", "zone": "Europe/Berlin"}], ids=["run", "schedule"])
async def test_a_pipeline_of_every_notation_is_decoded_in_a_workflow(
    time_skipping: WorkflowEnvironment, schedule: dict[str, str] | None
) -> None:
    source = {"path": "/in/*.csv", "format": "csv", "schema": "id INT, at TIMESTAMP", "options": OPTIONS}
    stated = {"name": "p", "write": {"source": source}, "tables": ["t.x"], "schedule": schedule}
    client = Client(time_skipping.client.service_client, data_converter=converter({}))
    fakes = FakeActivities()
    harness = WorkflowHarness(client, fakes)
    request = RunRequest(
        pipeline=Pipeline.model_validate(stated),
        input=RunInput(digest="d"),
        starter="tester",
        policy=Policy(spark_queue=harness.queue),
    )
    known_zones.cache_clear()  # as in a worker that has validated no pipeline yet
    async with Worker(
        client,
        task_queue=harness.queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=fakes.activities(),
    ):
        handle = await client.start_workflow(
            WriteAuditPublish.run, request, id=str(uuid.uuid4()), task_queue=harness.queue
        )
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(harness.end(handle), 60)
        events = [event.event_type async for event in handle.fetch_history_events()]
        assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in events
        assert EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED in events
