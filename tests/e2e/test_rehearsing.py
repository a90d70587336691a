"""Rehearsals: faults are planted on branches that are deleted, and main stays unchanged."""

from pathlib import Path

import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file
from tests.harness.system import SystemHarness

_PIPELINE = """\
name: rehearsed
write:
  source: {path: "{{ partition }}.csv", format: csv, schema: "id BIGINT, kind STRING"}
  transform: SELECT id, kind FROM source WHERE kind IN ('a', 'b')
tables:
  t.rehearsed:
    checks: [not_null: [id], accepted_values: {column: kind, values: [a, b]}]
approval: {timeout: 1h}
"""


@pytest.mark.slow
def test_a_check_that_cannot_catch_its_fault_is_named_and_nothing_is_left(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    csv_file(tmp_path / "in.csv", [{"id": 1, "kind": "a"}])
    file, head = system.file(_PIPELINE), lake.head()
    output = system.command("rehearse", str(file), "--partition", "in", "-n", "50", "--json")
    assert output.code == 3, output
    results = {each["check"]: each["result"] for each in output.json["checks"]}
    assert results == {"not_null:id": "caught", "accepted_values:kind": "not caught"}
    assert (output.json["main_before"], output.json["main_after"], output.json["branches_left"]) == (head, head, [])
    assert lake.head() == head and not lake.branches("rehearsed")
    assert lake.rows("t.rehearsed") == []
    shown = system.command("rehearse", str(file), "--partition", "in", "-n", "50")
    assert "NOT CAUGHT" in shown.out and "1 of 2 checks caught their fault" in shown.out, shown.out
