"""A table that a check reads changes while people decide: the check is answered again, with any `ref`."""

from pathlib import Path

import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

CHECKS = {
    "branch": "[relationships: {column: customer, to: t.%s, field: id}]",
    "sql": "[sql: SELECT * FROM t.%s_orders o LEFT ANTI JOIN t.%s c ON o.customer = c.id]",
}


def _delete_customers(name: str, where: str) -> str:
    return (
        f"name: delete-{name}\nwrite:\n  mode: sql\n  statements: [DELETE FROM t.{name} WHERE {where}]\n"
        f"tables:\n  t.{name}: {{}}\n"
    )


@pytest.mark.parametrize("kind", [pytest.param("branch"), pytest.param("sql", marks=pytest.mark.slow)])
def test_customers_are_deleted_while_orders_wait_for_approval(
    kind: str, system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    """Orders of deleted customers are kept out, and nobody decides about them again."""
    name = f"customers_{kind}"
    people = csv_file(tmp_path / "people.csv", [{"id": 1}, {"id": 2}])
    assert system.run(pipeline(name, people)).code == 0
    orders = csv_file(tmp_path / "orders.csv", [{"number": 10, "customer": 1}, {"number": 11, "customer": 2}])
    checks = CHECKS[kind] % ((name,) * CHECKS[kind].count("%s"))
    run = system.start(pipeline(f"{name}_orders", orders, checks, more="approval: {timeout: 1h}"))
    system.wait_for_stage(run, "waiting for approval")
    assert system.run(_delete_customers(name, "id = 2")).json["outcome"] == "published"
    system.approve(run)
    ended = system.wait_for_end(run)
    assert (ended.json["outcome"], ended.json["cause"]) == ("quarantined", "audit"), ended.json
    assert [each["tables"] for each in ended.json["conflicts"]] == [[f"t.{name}"]]
    assert lake.rows(f"t.{name}_orders") == []


@pytest.mark.slow
def test_orders_are_approved_again_and_published_if_their_customers_are_still_there(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    name = "customers_kept"
    people = csv_file(tmp_path / "people.csv", [{"id": 1}, {"id": 2}])
    assert system.run(pipeline(name, people)).code == 0
    orders = csv_file(tmp_path / "orders.csv", [{"number": 10, "customer": 1}])
    run = system.start(pipeline(f"{name}_orders", orders, CHECKS["branch"] % name, more="approval: {timeout: 1h}"))
    system.wait_for_stage(run, "waiting for approval")
    assert system.run(_delete_customers(name, "id = 2")).json["outcome"] == "published"
    system.approve(run)
    again = system.wait_for_attempt(run, 2)
    assert [(each["tables"], each["resolved"]) for each in again["conflicts"]] == [([f"t.{name}"], "rebased")]
    system.approve(run)
    ended = system.wait_for_end(run)
    assert ended.json["outcome"] == "published", ended.json
    assert [row["number"] for row in lake.rows(f"t.{name}_orders")] == [10]
