"""Record the histories that `tests/workflow/test_replay.py` replays.

Run `make histories` only after a change that is meant to break replay. Each history is a real run on a real stack, in
which names of this machine are replaced afterwards.
"""

import asyncio
import json
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.harness.histories import HistoryFiles, stack_for_histories
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.record_start_histories import StartRecorder
from tests.harness.session_guard import SessionGuard
from tests.harness.system import SystemHarness

_ROWS: list[dict[str, Any]] = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
_SLOW = "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\nimport time\ntime.sleep(60)\n"


class Recorder:
    """Runs one pipeline for each ending, and records its history."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.environment = variables
        self.system, self._files = SystemHarness(folder, variables), HistoryFiles(folder, variables)
        self.folder = folder
        self.worker = WorkerProcess(self.environment, folder)

    def record(self) -> None:
        """Record all endings."""
        self._keep("published", self._begin("published", "[not_null: id, unique: id]"))
        self._keep("failed_audit", self._begin("failed-audit", "[not_null: name]"))
        self._keep("expired", self._begin("expired", more="approval: {timeout: 2s}"))
        for ending, command in {
            "approved": ("approve", "--hash"),
            "rejected": ("reject", "--reason", "no", "--hash"),
            "cancelled_while_waiting": ("cancel", "--yes"),
        }.items():
            run = self._begin(ending.replace("_", "-"), more="approval: {timeout: 1h}")
            waiting = self.system.wait_for_stage(run, "waiting for approval")
            named = [waiting["audited_hash"]] if command[-1] == "--hash" else []
            assert self.system.command(command[0], run, *command[1:], *named).code == 0
            self._keep(ending, run)
        self._waived()
        self._rebased()
        self._released_and_rolled_back()
        self._cancelled_during_write()
        self._worker_killed()
        self.worker.stop()
        self.record_lineage()
        self.record_registered()
        self.record_checkpointed()

    def record_lineage(self) -> None:
        """Record a run whose worker writes OpenLineage events to its log."""
        self.worker = WorkerProcess({**self.environment, "OPENLINEAGE__TRANSPORT__TYPE": "console"}, self.folder)
        self._keep("lineage", self._begin("lineage", "[not_null: id]"))
        self.worker.stop()

    def record_registered(self) -> None:
        """Record a run that sends OpenLineage events and registers its publication by a program that does nothing."""
        targets = self.folder / "targets.yml"
        targets.write_text(json.dumps({"targets": {"announce": {"kind": "command", "command": ["/usr/bin/true"]}}}))
        more = {"OPENLINEAGE__TRANSPORT__TYPE": "console", "SLUICE_TARGETS_FILE": str(targets)}
        self.worker = WorkerProcess({**self.environment, **more}, self.folder)
        self._keep("registered", self._begin("registered", "[not_null: id]", "after_publish: [announce]"))
        self.worker.stop()

    def record_checkpointed(self) -> None:
        """Record a rebased run that ends workflow tasks by activities."""
        self.worker = WorkerProcess(self.environment, self.folder)
        self._rebased("checkpointed")
        self.worker.stop()

    def _cancelled_during_write(self) -> None:
        (self.folder / "slow.py").write_text(_SLOW)
        run = self.system.start(f"name: slow\nwrite: {{job: {self.folder / 'slow.py'}}}\ntables: [t.slow]\n")
        self.system.wait_for_stage(run, "writing")
        self.system.cancel(run)
        self._keep("cancelled_during_write", run)

    def _waived(self) -> None:
        run = self._begin("waived", "[not_null: {column: name, waivable: true}]")
        waiting = self.system.wait_for_stage(run, "waiting for approval")
        until = str(datetime.now(timezone.utc).date() + timedelta(days=30))
        waiver = ("--waive", "not_null(name)", "--reason", "late feed", "--until", until)
        assert self.system.command("approve", run, *waiver, "--hash", waiting["audited_hash"]).code == 0
        self._keep("waived", run)

    def _rebased(self, name: str = "rebased") -> None:
        run = self._begin(name, more="approval: {timeout: 1h}")
        waiting = self.system.wait_for_stage(run, "waiting for approval")
        other = csv_file(self.folder / "other.csv", [{"id": 3, "name": "c"}])  # the same rows would be the same input
        assert self.system.run(pipeline(name, other)).code == 0
        assert self.system.command("approve", run, "--hash", waiting["audited_hash"]).code == 0
        rebased = self.system.wait_for_attempt(run, 2)
        assert self.system.command("approve", run, "--hash", rebased["audited_hash"]).code == 0
        self._keep(name, run)

    def _released_and_rolled_back(self) -> None:
        kept = self._begin("released", "[row_count: 9]")
        self.system.command("watch", kept)
        right = self.system.file(pipeline("released", self.folder / "released.csv", "[row_count: 2]"))
        run_id = self.system.status(kept)["run_id"]
        released = self.system.command("quarantine", "release", run_id, "--pipeline", str(right), "--json", "--yes")
        assert released.code == 0, released.err
        self._keep("released", released.json["workflow_id"])
        back = self.system.command("rollback", released.json["run_id"], "--json", "--yes")
        assert back.code == 0, back.err
        self._keep("rolled_back", back.json["workflow_id"])

    def _worker_killed(self) -> None:
        run = self._begin("worker-killed")
        self.system.wait_for_stage(run, "writing")
        self.worker.kill()
        self.worker = WorkerProcess(self.environment, self.folder)
        self._keep("worker_killed", run)

    def _begin(self, name: str, checks: str = "[row_count: 1]", more: str = "") -> str:
        return self.system.start(pipeline(name, csv_file(self.folder / f"{name}.csv", _ROWS), checks, more))

    def _keep(self, ending: str, run: str) -> None:
        self.system.wait_for_end(run)
        asyncio.run(self._files.keep_workflow(ending, run))


def main() -> None:
    """Write the histories to `tests/histories`."""
    with stack_for_histories() as (folder, variables):
        Recorder(folder, variables).record()
        StartRecorder(folder, variables).record()


if __name__ == "__main__":
    with closing(SessionGuard()):
        main()
