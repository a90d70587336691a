"""Many runs at once: runs that wait for Spark do not delay the small steps of other runs."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client

from runtime.run.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.contracts.run_request import REVISION, Policy, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness
from workflows.write_audit_publish import WriteAuditPublish

_WAITING = 20
"""Number of waiting runs: more than a worker accepts at a time."""
_SLOW = """\
import time
from pathlib import Path
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate()
while not Path({go!r}).exists():
    time.sleep(0.1)
"""


@pytest.mark.slow
async def test_writes_that_wait_for_a_slot_hold_up_no_other_step(
    system: SystemHarness, client: Client, tmp_path: Path
) -> None:
    environment = {**system.environment, "SLUICE_TASK_QUEUE": "one-slot", "SPARK_SLOTS": "1"}
    system = SystemHarness(tmp_path, environment)
    worker = WorkerProcess(environment, tmp_path)
    go, program = tmp_path / "go", tmp_path / "slow.py"
    program.write_text(_SLOW.format(go=str(go)))
    try:
        source = csv_file(tmp_path / "in.csv", [{"id": 1}])
        name = system.start(pipeline("ahead", source, more="approval: {timeout: 1h}"))
        system.wait_for_stage(name, "waiting for approval")
        waiting_for_slot = [await _writing(client, program, number) for number in range(_WAITING)]
        while {(await run.query(WriteAuditPublish.status)).stage for run in waiting_for_slot} != {"writing"}:
            await asyncio.sleep(0.2)
        waiting = client.get_workflow_handle_for(WriteAuditPublish.run, name)
        await waiting.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="ana"))
        assert (await asyncio.wait_for(waiting.result(), 300)).outcome == "published"
        for run in waiting_for_slot:
            await run.cancel()
        await asyncio.gather(*(run.result() for run in waiting_for_slot), return_exceptions=True)
    finally:
        go.touch()
        worker.stop()


async def _writing(client: Client, program: Path, number: int) -> Handle:
    """Start a run that keeps Spark busy, or waits for it."""
    stated = {"name": f"behind-{number}", "write": {"job": str(program)}, "tables": {f"t.behind_{number}": {}}}
    request = RunRequest(
        pipeline=Pipeline.model_validate(stated),
        input=RunInput(digest=str(number)),
        starter="tester",
        policy=Policy(heartbeat_timeout=5, spark_queue="one-slot-spark"),
        revision=REVISION,
    )
    return await client.start_workflow(WriteAuditPublish.run, request, id=f"behind-{number}", task_queue="one-slot")
