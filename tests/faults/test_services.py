"""Nessie and Temporal are killed, or forget everything: a run waits, publishes once, or is refused.

All tests break one stack, one after the other. The last one deletes the repository of its Nessie.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.stack import Stack
from tests.harness.kills import find_daemon, kill_service
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness, own_stack


@pytest.fixture(scope="module")
def unstable_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with own_stack(tmp_path_factory.mktemp("services")) as stack:
        yield stack


def _environment(stack: Stack) -> dict[str, str]:
    return {
        **os.environ,
        **stack.up(with_worker=False),
        "SLUICE_HOME": str(stack.home),
        "SLUICE_HEARTBEAT_TIMEOUT": "5",
    }


@pytest.mark.parametrize(
    ("service", "stage"),
    [
        pytest.param("nessie", "writing", marks=pytest.mark.matrix),
        pytest.param("nessie", "scanning", marks=pytest.mark.sentinel("Nessie killed")),
        ("temporal", "scanning"),
    ],
)
def test_a_service_is_killed_and_comes_back(service: str, stage: str, unstable_stack: Stack, tmp_path: Path) -> None:
    """A service is killed under a run and comes back: the run waits, and publishes once."""
    environment = _environment(unstable_stack)
    system, lake = SystemHarness(tmp_path, environment), LakeReader(environment)
    worker = WorkerProcess(environment, tmp_path)
    try:
        name = f"survives_{service}_{stage}"
        source = csv_file(tmp_path / "in.csv", [{"id": number} for number in range(100)])
        run = system.start(pipeline(name, source, f"[sql: SELECT * FROM t.{name} WHERE id < 0]"))
        system.wait_for_stage(run, stage)
        assert kill_service(unstable_stack, service)["NESSIE_URI"] == environment["NESSIE_URI"]
        ended = system.wait_for_end(run)
        assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
        assert sorted(row["id"] for row in lake.rows(f"t.{name}")) == list(range(100))
        assert not lake.branches()
    finally:
        worker.stop()


def test_temporal_forgot_but_main_did_not(unstable_stack: Stack, tmp_path: Path) -> None:
    """Without the histories, the certificate on main still says that this input was published."""
    text = pipeline("known", csv_file(tmp_path / "in.csv", [{"id": 1}]))
    codes = []
    for _ in range(2):
        environment = _environment(unstable_stack)
        worker = WorkerProcess(environment, tmp_path)
        ended = SystemHarness(tmp_path, environment).run(text)
        codes.append((ended.code, ended.json["outcome"]))
        rows = LakeReader(environment).rows("t.known")
        worker.stop()
        find_daemon(unstable_stack, "temporal").stop()
        for database in unstable_stack.home.glob("temporal.db*"):
            database.unlink()
    assert codes == [(0, "published"), (0, "skipped")]
    assert "already published: loaded into t.known by run" in ended.json["reason"] and len(rows) == 1


def test_a_nessie_that_came_back_empty_is_refused(unstable_stack: Stack, tmp_path: Path) -> None:
    """Nessie came back as another repository while people decided: the run is refused, and nothing is merged."""
    environment = _environment(unstable_stack)
    system = SystemHarness(tmp_path, environment)
    worker = WorkerProcess(environment, tmp_path)
    try:
        source = csv_file(tmp_path / "in.csv", [{"id": 1}])
        run = system.start(pipeline("other", source, more="approval: {timeout: 1h}"))
        system.wait_for_stage(run, "waiting for approval")
        find_daemon(unstable_stack, "nessie").stop()
        shutil.rmtree(unstable_stack.home / "nessie")
        assert unstable_stack.up(with_worker=False)["NESSIE_URI"] == environment["NESSIE_URI"]
        system.approve(run)
        ended = system.wait_for_end(run)
        assert (ended.code, ended.json["outcome"]) == (6, "failed")
        assert "has another repository" in ended.json["reason"]
        assert LakeReader(environment).rows("t.other") == []
    finally:
        worker.stop()
