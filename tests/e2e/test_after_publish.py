"""Registrations of real runs at receivers that are unavailable, briefly or for long; the worker is killed."""

import base64
import json
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakehouse.open_catalog import open_catalog
from sluice.contracts.registration import CheckRegistrationsInput
from sluice.settings import read_settings
from tests.harness.http_receiver import HttpReceiver
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.rest_catalog import RestCatalogServer
from tests.harness.system import SystemHarness
from tests.harness.temporal_thread import TEMPORAL
from workflows.registration.check_registrations import CheckRegistrations

SECRET = "whsec_" + base64.b64encode(os.urandom(32)).decode()


class Installation:
    """A worker of the test's own with targets: a webhook, and a command that appends the event to a file."""

    def __init__(self, system: SystemHarness, warm: dict[str, str], folder: Path, name: str) -> None:
        self.folder, self.receiver, self.events = folder, HttpReceiver(), folder / "events.jsonl"
        self.other = RestCatalogServer()
        append = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"
        targets = {
            "hook": {"kind": "webhook", "url": f"{self.receiver.url}/h", "secret": {"env": "HOOK_SECRET"}},
            "announce": {
                "kind": "command",
                "command": ["/usr/bin/env", "python3", "-c", append, str(self.events)],
                "tables": ["watched.*"],
            },
            "other": {"kind": "rest", "uri": self.other.uri, "reads_local_files": True},
        }
        file = folder / "targets.yml"
        file.write_text(json.dumps({"targets": targets}))
        self.environment = {
            **system.environment,
            "SLUICE_TASK_QUEUE": name,
            "SLUICE_WORKER_ROLE": "control",
            "SLUICE_TARGETS_FILE": str(file),
            "HOOK_SECRET": SECRET,
        }
        self.system = SystemHarness(folder, self.environment, spark_queue=read_settings(warm).installation.spark_queue)
        self.worker = WorkerProcess(self.environment, folder)

    def run(self, name: str, rows: list[dict[str, Any]], more: str = "after_publish: [hook]") -> str:
        """Start a run that is published."""
        return self.system.start(pipeline(name, csv_file(self.folder / f"{name}.csv", rows), "[row_count: 1]", more))

    def registered(self, run: str) -> dict[str, str]:
        """Return the state of each registration of a run, as `status` prints it."""
        shown = self.system.command("status", run, "--json").json
        return {each["target"]: each["state"] for each in shown["registrations"]}

    def is_registered(self, run: str, target: str) -> bool:
        """Return True if a run's registration at a target is done."""
        return self.registered(run)[target] == "done"

    async def check_registrations(self) -> None:
        """Check registrations as the schedule does."""
        client, settings = await TEMPORAL.client(self.environment), read_settings(self.environment)
        await client.execute_workflow(
            CheckRegistrations.run,
            CheckRegistrationsInput(),
            id=str(uuid.uuid4()),
            task_queue=settings.installation.sluice_task_queue,
        )

    def is_done(self, run: str) -> bool:
        """Return True if the webhook got the event of a run."""
        return self.registered(run) == {"hook": "done"}

    def stop(self) -> None:
        self.worker.stop()
        self.receiver.close()
        self.other.close()
        for log in self.folder.glob("**/*.log"):
            assert SECRET not in log.read_text()


@pytest.fixture
def installation(
    system: SystemHarness, warm_stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Installation]:
    installation = Installation(system, warm_stack, tmp_path, request.node.name)
    yield installation
    installation.stop()


def test_a_receiver_that_fails_for_a_while_is_told_within_the_run(installation: Installation) -> None:
    installation.receiver.answer = lambda number: 500 if number < 3 else 200
    stated = "publish: {message: Load May, metadata: {owner: ana}}"
    run = installation.run("told_soon", [{"id": 1}], f"after_publish: [hook, announce]\n{stated}")
    ended = installation.system.wait_for_end(run)
    assert (ended.code, ended.json["outcome"]) == (0, "published")
    assert {each["target"]: each["state"] for each in ended.json["registrations"]} == {
        "hook": "done",
        "announce": "done",
    }
    bodies = [json.loads(request.body) for request in installation.receiver.requests]
    assert len({body["id"] for body in bodies}) == 1 and len(bodies) == 3
    (line,) = installation.events.read_text().splitlines()
    assert json.loads(line) == bodies[0]
    assert bodies[0]["data"]["main_after"] == ended.json["main_after"]
    assert bodies[0]["data"]["publish"] == ended.json["publish"]
    assert (ended.json["publish"]["message"], ended.json["publish"]["metadata"]) == ("Load May", {"owner": "ana"})
    assert bodies[0]["data"]["tables"]["t.told_soon"]["added_rows"] == 1
    report = json.loads(Path(ended.json["report"].removeprefix("file://")).read_text())
    assert [each["state"] for each in report["registrations"]] == ["done", "done"]


@pytest.mark.slow
def test_a_run_ends_while_its_receiver_is_away_and_a_killed_worker_loses_nothing(installation: Installation) -> None:
    installation.receiver.answer = lambda number: 503
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda name: installation.run(name, [{"id": name}]), ("away_one", "away_two")))
    for run in runs:
        ended = installation.system.wait_for_end(run)
        assert ended.json["outcome"] == "published"
        assert [each["state"] for each in ended.json["registrations"]] == ["pending"]
        assert installation.registered(run) == {"hook": "pending"}
    installation.worker.kill()
    installation.receiver.answer = lambda number: 200
    received = len(installation.receiver.requests)
    installation.worker = WorkerProcess(installation.environment, installation.folder)
    for run in runs:
        wait_for(partial(installation.is_done, run))
    ids = {json.loads(request.body)["data"]["workflow_id"] for request in installation.receiver.requests[received:]}
    assert ids == set(runs)


@pytest.mark.slow
def test_a_target_that_does_not_exist_is_refused_before_spark_starts(installation: Installation) -> None:
    refused = installation.system.run(
        pipeline(
            "untold", csv_file(installation.folder / "u.csv", [{"id": 1}]), "[row_count: 1]", "after_publish: [hok]"
        ),
        SLUICE_TARGETS_FILE="",  # this command has no targets file
    )
    assert refused.json["outcome"] == "failed" and "did you mean 'hook'" in refused.err
    assert refused.json["cause"] == "invalid" and refused.json["registrations"] == []


@pytest.mark.slow
def test_two_runs_at_once_leave_another_catalog_at_main_and_drift_is_mended(installation: Installation) -> None:
    system, other, more = installation.system, installation.other, "after_publish: [other]"
    other.fail = lambda request: 500 if len(other.requests) < 5 else None
    files = [csv_file(installation.folder / f"{n}.csv", [{"id": n}]) for n in (1, 2)]
    with ThreadPoolExecutor() as pool:
        ended = list(pool.map(lambda file: system.run(pipeline("both", file, "[row_count: 1]", more)), files))
    assert [each.json["outcome"] for each in ended] == ["published", "published"]
    for each in ended:
        wait_for(partial(installation.is_registered, each.json["workflow_id"], "other"))
    catalog = open_catalog(read_settings(installation.environment))
    now = catalog.table_version(catalog.main, "t.both")
    assert now and other.tables == {("t", "both"): now.metadata_location}
    del other.tables["t", "both"]  # somebody dropped the table there
    TEMPORAL.run(installation.check_registrations())
    wait_for(lambda: other.tables == {("t", "both"): now.metadata_location})
