"""A backfill of an old month, after a schedule of the same pipeline replaced partitions of the table."""

import asyncio
import uuid
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sluice.contracts.starting import EndedRun, PipelineText, StartPipelineInput
from sluice.pipeline.loading_rules import Way
from sluice.pipeline.placeholders import partition_values, time_values
from tests.harness.memory_system import MemorySystem
from workflows.run.start_pipeline import StartPipeline


@pytest.mark.parametrize("mode", ["merge", "overwrite_partitions"])
def test_an_old_month_does_not_replace_rows_of_a_later_time(memory: MemorySystem, tmp_path: Path, mode: str) -> None:
    memory.catalog.clear()
    name = f"u{uuid.uuid4().hex[:8]}"
    keys = ", keys: [id]" if mode == "merge" else ""

    def start(values: dict[str, str], file: str, value: int, way: Way) -> EndedRun:
        (tmp_path / file).write_text(f"id,v,p\n1,{value},7\n")
        used = "{{ partition }}" if "partition" in values else "{{ scheduled_for.date }}"
        text = (
            f"name: {name}\n"
            f"write: {{source: {{path: '{tmp_path}/{used}.csv', format: csv}}, mode: {mode}{keys}}}\n"
            f"tables: {{t.{name}: {{partition_by: [p], checks: [not_null: [id]]}}}}\n"
        )
        stated = PipelineText(name="p.yml", text=text, folder=str(tmp_path))
        given = StartPipelineInput(pipeline=stated, starter="tester", values=values, way=way, in_order=True)
        queue = memory.settings.installation.sluice_task_queue
        running = memory.client.execute_workflow(StartPipeline.run, given, id=f"u-{uuid.uuid4()}", task_queue=queue)
        return memory.run(asyncio.wait_for(running, 100))

    today = time_values(datetime(2026, 3, 2, 5, 30, tzinfo=timezone.utc))
    assert start(today, "2026-03-02.csv", 26, "schedule").outcome == "published"
    old = start(partition_values("2018-01"), "2018-01.csv", 18, "backfill each")
    assert memory.lake.rows(f"t.{name}") == [{"id": 1, "v": 26, "p": 7}], old
