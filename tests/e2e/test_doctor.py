"""`doctor` on a running system."""

from tests.harness.system import SystemHarness


def test_a_system_that_runs_is_well(system: SystemHarness) -> None:
    result = system.command("doctor", "--json")
    states = {each["part"]: each["state"] for each in result.json["findings"]}
    assert result.code == 0, result.json
    assert {part for part, state in states.items() if state == "ok"} >= {
        "settings", "Temporal", "search attributes", "worker", "catalog", "branches", "tokens", "lake", "Java", "jars",
    }  # fmt: skip


def test_without_a_worker_that_is_said(system: SystemHarness) -> None:
    result = system.command("doctor", SLUICE_TASK_QUEUE="a queue that no worker takes from")
    assert result.code == 7
    assert "no worker takes work from the task queue" in result.out and "make up" in result.out
