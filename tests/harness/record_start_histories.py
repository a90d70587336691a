"""Record the histories of the workflows that start runs without a person: landing zones, schedules and backfills.

`make histories` runs it; by itself: `python -m tests.harness.record_start_histories`.
"""

import asyncio
from pathlib import Path

from runtime.installation.identity import with_installation, with_known_installation
from runtime.temporal_client import connect
from sluice.identifiers import backfill_id, schedule_id
from sluice.settings import read_settings
from tests.harness.command_line import CommandResult
from tests.harness.histories import REPLAYED_QUEUE, HistoryFiles, stack_for_histories
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

_CHECKS = "checks: [not_null: [id], unique: [id]]"


class StartRecorder:
    """Lets files arrive, a schedule trigger and backfills run, and records the history of each ended workflow."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        environment = {**variables, "SLUICE_TASK_QUEUE": REPLAYED_QUEUE}
        self._folder, self._environment = folder, environment
        self._system, self._files = SystemHarness(folder, environment), HistoryFiles(folder, environment)

    def record(self) -> None:
        """Record all of these histories."""
        worker = WorkerProcess(self._environment, self._folder)
        try:
            self._record_arrivals()
            self._record_schedule()
            self._record_backfills()
        finally:
            worker.stop()

    def _record_arrivals(self) -> None:
        landing, pipelines = self._folder / "landing", self._folder / "arriving"
        landing.mkdir()
        pipelines.mkdir()
        file = pipelines / "arriving.yml"
        file.write_text(
            f"name: arriving\nwrite: {{source: {{format: csv}}}}\ntables: {{t.arriving: {{{_CHECKS}}}}}\n"
            f"arrival: {{from: {landing}, settle: 1s, look: 1h}}\n"
        )
        self._run("deploy", str(pipelines), "--yes")
        (landing / "good.csv").write_text("id\n1\n")
        self._wait_for_status({"loaded": 1})
        (landing / "bad.csv").write_text("id\n2\n2\n")
        self._wait_for_state("kept out")
        (held,) = self._run("arrivals", "arriving", "--json").json["batches"]
        self._run("arrivals", "arriving", "--set-aside", held["ref"]["id"], "--yes")
        self._wait_for_state("set aside")
        self._keep_first("arrival_runs", "WorkflowType = 'ArrivalRuns'")
        file.unlink()
        self._run("deploy", str(pipelines), "--yes")
        self._keep_first("landing_zone", "WorkflowType = 'LandingZone' AND ExecutionStatus != 'Running'")
        self._keep_first("start_pipeline", "WorkflowType = 'StartPipeline' AND ExecutionStatus = 'Completed'")

    def _wait_for_status(self, counts: dict[str, int]) -> None:
        def shown() -> object:
            zones = self._system.command("arrivals", "arriving", "--json").json
            return zones.get("counts")

        wait_for(lambda: shown() == counts, lambda: f"the landing zone has {shown()}")

    def _wait_for_state(self, state: str) -> None:
        def states() -> list[str]:
            zones = self._system.command("arrivals", "arriving", "--json").json
            return [batch["state"] for batch in zones.get("batches", [])]

        wait_for(lambda: states() == [state], lambda: f"the batches are {states()}")

    def _record_schedule(self) -> None:
        folder = self._folder / "scheduled"
        folder.mkdir()
        (folder / "data.csv").write_text("id\n1\n")
        file = folder / "scheduled.yml"
        file.write_text(
            f"name: scheduled\nwrite: {{source: {{path: {folder}/data.csv}}}}\ntables: {{t.scheduled: {{{_CHECKS}}}}}\n"
            'schedule: {cron: "0 3 1 1 *", zone: UTC}\n'
        )
        self._run("deploy", str(folder), "--yes")
        asyncio.run(self._trigger("scheduled"))
        self._keep_first("start_scheduled", "WorkflowType = 'StartScheduled' AND ExecutionStatus = 'Completed'")
        file.unlink()
        self._run("deploy", str(folder), "--yes")

    async def _trigger(self, name: str) -> None:
        client = await connect(self._environment)
        settings = with_known_installation(read_settings(self._environment))
        await client.get_schedule_handle(schedule_id(settings.installation.sluice_installation, name)).trigger()

    def _record_backfills(self) -> None:
        folder = self._folder / "backfilled"
        folder.mkdir()
        for month, ids in {"2018-01": "1\n2", "2018-02": "3\n3", "2018-03": "4"}.items():
            (folder / f"{month}.csv").write_text(f"id\n{ids}\n")
        for publish in ("each", "together"):
            file = self._system.file(
                f"name: {publish}\nwrite: {{source: {{path: '{folder}/{{{{ partition }}}}.csv'}}}}\n"
                f"tables: {{t.{publish}: {{{_CHECKS}}}}}\n"
            )
            asked = ("backfill", str(file), "--partitions", "2018-01..2018-03", "--publish", publish, "--json")
            assert self._system.command(*asked).code == 3
            (folder / "2018-02.csv").write_text("id\n3\n")
            self._run("backfill", "retry", publish) if publish == "together" else self._run(*asked)
            self._system.command("backfill", "watch", publish, "--json")
            workflow_id = backfill_id(
                with_installation(read_settings(self._environment)).installation.sluice_installation, publish
            )
            asyncio.run(self._files.keep_workflow(f"backfill_{publish}", workflow_id))
            (folder / "2018-02.csv").write_text("id\n3\n3\n")

    def _run(self, *arguments: str) -> CommandResult:
        done = self._system.command(*arguments)
        assert done.code == 0, done.err
        return done

    def _keep_first(self, name: str, query: str) -> None:
        asyncio.run(self._files.keep_first(name, query))


def main() -> None:
    """Write the histories to `tests/histories`."""
    with stack_for_histories() as (folder, variables):
        StartRecorder(folder, variables).record()


if __name__ == "__main__":
    main()
