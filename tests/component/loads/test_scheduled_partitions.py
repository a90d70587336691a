"""Scheduled times with `mode: overwrite_partitions`: an earlier time does not replace the rows of a later one."""

import asyncio
import uuid
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sluice.contracts.starting import EndedRun, PipelineText, StartPipelineInput
from sluice.pipeline.placeholders import time_values
from tests.harness.memory_system import MemorySystem
from workflows.run.start_pipeline import StartPipeline


@pytest.mark.parametrize("mode", ["overwrite", "merge", "overwrite_partitions"])
def test_an_earlier_time_does_not_replace_rows_of_a_later_one(memory: MemorySystem, tmp_path: Path, mode: str) -> None:
    memory.catalog.clear()
    name = f"s{uuid.uuid4().hex[:8]}"
    keys = ", keys: [id]" if mode == "merge" else ""
    text = (
        f"name: {name}\n"
        f"write: {{source: {{path: '{tmp_path}/{{{{ scheduled_for.date }}}}.csv', format: csv}}, mode: {mode}{keys}}}\n"
        f"tables: {{t.{name}: {{partition_by: [p], checks: [not_null: [id]]}}}}\n"
        "schedule: {cron: 30 5 * * *}\n"
    )
    for day in (1, 2):
        (tmp_path / f"2026-03-0{day}.csv").write_text(f"id,v,p\n1,{day},7\n")

    def start(day: int, way: str) -> EndedRun:
        given = StartPipelineInput(
            pipeline=PipelineText(name="p.yml", text=text, folder=str(tmp_path)),
            starter="tester",
            values=time_values(datetime(2026, 3, day, 5, 30, tzinfo=timezone.utc)),
            way=way,
        )
        queue = memory.settings.installation.sluice_task_queue
        running = memory.client.execute_workflow(StartPipeline.run, given, id=f"s-{uuid.uuid4()}", task_queue=queue)
        return memory.run(asyncio.wait_for(running, 100))

    assert start(2, "schedule").outcome == "published"
    late = start(1, "by hand")
    assert memory.lake.rows(f"t.{name}") == [{"id": 1, "v": 2, "p": 7}], late
    assert late.outcome == "failed" and "2026-03-01" in late.reason
