"""Rows of a later scheduled time stay when a run of an earlier time, or of an older partition, comes late."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from sluice.contracts.starting import EndedRun, PipelineText, StartPipelineInput
from sluice.pipeline.loading_rules import Way
from sluice.pipeline.placeholders import partition_values, time_values
from tests.harness.memory_system import MemorySystem
from workflows.run.start_pipeline import StartPipeline

Start = Callable[[str, Mapping[str, str], Way], EndedRun]


@pytest.fixture
def name(memory: MemorySystem) -> str:
    memory.catalog.clear()
    return f"s{uuid.uuid4().hex[:8]}"


@pytest.fixture
def start(memory: MemorySystem, tmp_path: Path, name: str) -> Start:
    """A function that runs the pipeline in a mode, for a time or a partition whose file has its number as `v`."""
    (tmp_path / "2026-03-01.csv").write_text("id,v,p\n1,1,7\n")
    (tmp_path / "2026-03-02.csv").write_text("id,v,p\n1,2,7\n")
    (tmp_path / "2018-01.csv").write_text("id,v,p\n1,18,7\n")

    def run(mode: str, values: Mapping[str, str], way: Way) -> EndedRun:
        keys = ", keys: [id]" if mode == "merge" else ""
        used = "{{ partition }}" if "partition" in values else "{{ scheduled_for.date }}"
        text = (
            f"name: {name}\n"
            f"write: {{source: {{path: '{tmp_path}/{used}.csv', format: csv}}, mode: {mode}{keys}}}\n"
            f"tables: {{t.{name}: {{partition_by: [p], checks: [not_null: [id]]}}}}\n"
        )
        stated = PipelineText(name="p.yml", text=text, folder=str(tmp_path))
        given = StartPipelineInput(pipeline=stated, starter="tester", values=dict(values), way=way, in_order=True)
        queue = memory.settings.installation.sluice_task_queue
        running = memory.client.execute_workflow(StartPipeline.run, given, id=f"s-{uuid.uuid4()}", task_queue=queue)
        return memory.run(asyncio.wait_for(running, 100))

    return run


def at(day: int) -> dict[str, str]:
    return time_values(datetime(2026, 3, day, 5, 30, tzinfo=timezone.utc))


@pytest.mark.parametrize("mode", ["overwrite", "merge", "overwrite_partitions"])
def test_an_earlier_time_does_not_replace_rows_of_a_later_one(
    memory: MemorySystem, name: str, start: Start, mode: str
) -> None:
    assert start(mode, at(2), "schedule").outcome == "published"
    late = start(mode, at(1), "by hand")
    assert memory.lake.rows(f"t.{name}") == [{"id": 1, "v": 2, "p": 7}], late
    assert late.outcome == "failed" and "2026-03-01" in late.reason


@pytest.mark.parametrize("mode", ["merge", "overwrite_partitions"])
def test_an_old_month_does_not_replace_rows_of_a_later_time(
    memory: MemorySystem, name: str, start: Start, mode: str
) -> None:
    assert start(mode, at(2), "schedule").outcome == "published"
    old = start(mode, partition_values("2018-01"), "backfill each")
    assert memory.lake.rows(f"t.{name}") == [{"id": 1, "v": 2, "p": 7}], old
