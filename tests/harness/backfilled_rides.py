"""Monthly files of rides, the pipeline of their backfill, and a worker that can be killed."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from runtime.installation.identity import with_installation
from sluice.identifiers import backfill_id
from sluice.settings import read_settings
from tests.harness.processes import WorkerProcess
from tests.harness.rides import ROWS, write_month
from tests.harness.system import SystemHarness
from tests.harness.temporal_thread import TEMPORAL

PIPELINE = """
name: together
write:
  source: {{path: "{folder}/rides-{{{{ partition }}}}.parquet"}}
tables:
  t.together:
    checks:
      - not_null: [ride_id]
      - unique: ride_id
      - accepted_range: {{column: ride_id, max: 1000000}}
"""


def month_number(month: str) -> int:
    """Return the number of a month such as `2019-01`, counted from January 2018."""
    year, of_year = map(int, month.split("-"))
    return (year - 2018) * 12 + of_year - 1


class BackfilledRides:
    """Monthly files of rides, one of them bad, their pipeline, and a worker that can be killed."""

    def __init__(self, system: SystemHarness, folder: Path, months: Iterable[str], bad: str) -> None:
        self.system, self.folder = system, folder
        for month in months:
            self.write(month, spoilt=month == bad)
        text = PIPELINE.format(folder=folder)
        self.file = system.file(text)
        self.to_approve = system.file(text.replace("together", "joint") + "approval: {timeout: 1h}\n")
        self.worker = WorkerProcess(system.environment, folder)

    def write(self, month: str, *, spoilt: bool = False) -> None:
        write_month(self.folder, month_number(month), name=f"rides-{month}.parquet", spoilt=spoilt)

    def share_a_key(self, month: str, other: int) -> None:
        """Give the first ride of a month the key of a ride of another month."""
        file = self.folder / f"rides-{month}.parquet"
        table = parquet.read_table(file)
        ids = [other * ROWS, *table["ride_id"].to_pylist()[1:]]
        column = table.schema.get_field_index("ride_id")
        parquet.write_table(table.set_column(column, "ride_id", pa.array(ids, pa.int64())), file)

    def terminate(self, pipeline: str) -> None:
        """Terminate the workflow of a backfill."""
        environment = self.system.environment
        workflow_id = backfill_id(
            with_installation(read_settings(environment)).installation.sluice_installation, pipeline
        )

        async def terminate() -> None:
            await (await TEMPORAL.client(environment)).get_workflow_handle(workflow_id).terminate()

        TEMPORAL.run(terminate())

    def kill_worker(self) -> None:
        self.worker.kill()
        self.worker = WorkerProcess(self.system.environment, self.folder)

    def backfill(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        done = self.system.command("backfill", *arguments, "--json")
        assert done.out, done.err
        return done.code, json.loads(done.out)

    @staticmethod
    def reasons(backfill: dict[str, Any]) -> str:
        """Return the state of each partition with its reason, as the message of a failed assertion."""
        return "\n".join(f"{name}: {each['state']}: {each['reason']}" for name, each in backfill["partitions"].items())

    def collected(self) -> int:
        counts: dict[str, int] = self.backfill("status", "together")[1]["counts"]
        return counts.get("collected", 0)
