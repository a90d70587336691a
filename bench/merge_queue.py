"""Measure the gain by the merge queue: many runs append to one table at once, with and without it, alternately.

    python -m bench.merge_queue [--runs 24] [--rounds 3] [--writes fake|warm]

With `fake` writes, PyIceberg appends a row in the worker, so that all runs reach the merge at about the same time.
With `warm` writes, the built-in job runs on the warm Spark. Each round uses a new table, created before. The measured
time is that from the start of a run to its end, by Temporal's clock: the median, the mean and the last.
"""

import argparse
import asyncio
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField, StringType
from temporalio import activity
from temporalio.client import Client

from activities.catalog_identity import CatalogIdentity
from activities.notifications.open_notifier import open_notifier
from bench.stack import BenchStack, bench_stack, median, save, say, small
from hosting.activities import control_activities
from lakehouse.audit.report_store import ReportStore
from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location, table_commit
from lakehouse.iceberg.file_io import file_io_properties
from runtime.installation.identity import with_installation
from runtime.pipeline.pipeline_input import find_input
from runtime.temporal_client import connect
from sluice.contracts.run_request import REVISION, Policy, RunRequest
from sluice.contracts.write import JobReport, WriteTableInput
from sluice.pipeline.file import parse_pipeline
from sluice.publishing.branch_properties import marks
from sluice.registration.targets import NO_TARGETS
from worker import WORKFLOWS, make_worker
from workflows.write_audit_publish import WriteAuditPublish

_SCHEMA = assign_fresh_schema_ids(Schema(NestedField(1, "id", LongType()), NestedField(2, "kind", StringType())))


@dataclass(frozen=True)
class FakeWrite:
    """A write activity that appends one row by PyIceberg, instead of Spark."""

    stack: BenchStack

    @activity.defn(name="write_table")
    def write_table(self, input: WriteTableInput) -> JobReport:
        """Append a row to the branch of the attempt."""
        (name,) = input.tables
        catalog, settings = self.stack.catalog, self.stack.settings
        io = load_file_io(file_io_properties(settings.storage), settings.storage.lake)
        version = catalog.table_version(input.branch, name)
        if version:
            location = version.metadata_location
            metadata = StaticTable.from_metadata(location, file_io_properties(settings.storage)).metadata
        else:
            folder = f"{settings.storage.lake}/{name.replace('.', '/')}"
            metadata = new_table_metadata(_SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, folder, {})
            location = next_metadata_location(metadata, "")
            ToOutputFile.table_metadata(metadata, io.new_output(location))

        def commit(new_location: str, changed: Any) -> None:
            tables = [table_commit(name, new_location, changed)]
            catalog.commit_tables(input.branch, catalog.head(input.branch), "a fake write", tables)

        table = Table(("b", *name.split(".")), metadata, location, io, BranchCommitCatalog(commit))
        rows = pa.Table.from_pylist([{"id": 1, "kind": "k"}], schema=_SCHEMA.as_arrow())
        table.append(rows, snapshot_properties=marks(input.run_ref))
        return JobReport(rows_written=1)


async def start(stack: BenchStack, client: Client, queue: str, table: str, merge_queue: bool) -> Any:
    """Start one run; return its handle."""
    pipeline = parse_pipeline(small(f"queue-{table.split('.')[1]}", table, stack.rows()), "bench")
    policy = Policy(spark_queue=f"{queue}-spark" if queue == "warm" else queue, merge_queue=merge_queue)
    request = RunRequest(
        pipeline=pipeline,
        input=find_input(pipeline),
        starter="bench",
        again=True,
        policy=policy,
        revision=REVISION,
    )
    run = f"{pipeline.name}-{uuid.uuid4().hex[:12]}"
    return await client.start_workflow(WriteAuditPublish.run, request, id=run, task_queue=queue)


async def once(
    stack: BenchStack, client: Client, queue: str, table: str, runs: int, merge_queue: bool
) -> dict[str, Any]:
    """Start `runs` runs at once; return the seconds of each, and their conflicts."""
    first = await start(stack, client, queue, table, merge_queue)
    await first.result()
    handles = await asyncio.gather(*(start(stack, client, queue, table, merge_queue) for _ in range(runs)))
    results = await asyncio.gather(*(handle.result() for handle in handles))
    if any(result.outcome != "published" for result in results):
        raise SystemExit(f"a measured run did not end as expected: {results}")
    described = [await handle.describe() for handle in handles]
    began = min(each.start_time for each in described)
    seconds = [(each.close_time - each.start_time).total_seconds() for each in described]
    conflicts = [len(result.conflicts) for result in results]
    return {
        "median": median(seconds),
        "mean": sum(seconds) / runs,
        "last": max((each.close_time - began).total_seconds() for each in described),
        "conflicts": sum(conflicts),
        "most_conflicts": max(conflicts),
        "seconds": seconds,
    }


async def measure(stack: BenchStack, writes: str, runs: int, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Measure round after round, with and without the queue, in an order that changes from round to round."""
    client = await connect(stack.variables)
    results: dict[str, list[dict[str, Any]]] = {"with": [], "without": []}
    async with AsyncExitStack() as running:
        queue = writes
        if writes == "warm":
            stack.system("warm")
        else:
            settings = with_installation(stack.settings).with_values(sluice_task_queue=queue)
            io = file_io_properties(settings.storage)
            reports, notifier = ReportStore(settings.storage.lake, io), open_notifier(settings.notifications)
            control = control_activities(client, settings, stack.catalog, io, reports, notifier, NO_TARGETS)
            activities = [*control, FakeWrite(stack).write_table]
            worker = make_worker(client, settings, queue, activities, WORKFLOWS, interceptors=[CatalogIdentity()])
            await running.enter_async_context(worker)
        for number in range(rounds + 1):
            for way in ("with", "without") if number % 2 else ("without", "with"):
                table = f"q.{writes}_{way}_{number}_{Path(stack.folder).name[-8:].replace('-', '_')}"
                took = await once(stack, client, queue, table, runs if number else 4, way == "with")
                text = ", ".join(f"{key} {value:.2f}" for key, value in took.items() if key != "seconds")
                say(f"{writes}, round {number}, {way}: {text}")
                if number:
                    results[way].append(took)
    return results


def main() -> None:
    """Measure, print the results, and save the raw data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--writes", choices=("fake", "warm"), default="fake")
    given = parser.parse_args()
    with bench_stack() as stack:
        results = asyncio.run(measure(stack, given.writes, given.runs, given.rounds))
    for key in ("median", "mean", "last", "conflicts"):
        with_queue, without = (median([each[key] for each in results[way]]) for way in ("with", "without"))
        ratio = with_queue / without if without else 1.0
        print(f"{key}: with the queue {with_queue:.2f}, without {without:.2f}: {ratio:.2f} times")
    save(f"merge_queue_{given.writes}", {"writes": given.writes, "runs": given.runs, **results})


if __name__ == "__main__":
    main()
