"""Files of the right size: few from small inputs, sorted on request, and compacted by a run."""

from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.table_state import TableState
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

pytestmark = pytest.mark.warm  # a compaction needs spark-submit in any case
_COMPACT = "name: compaction\nwrite: {mode: compact, options: {min-input-files: 2}}\ntables: [t.many_files]\n"


def written(stack: dict[str, str], table: str) -> TableState:
    version = open_catalog(read_settings(stack)).table_version("main", table)
    assert version
    return TableState.load(version, None, {})


def test_many_small_files_make_one(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(60):
        csv_file(folder / f"{number}.csv", [{"id": number, "kind": "x"}])
    ended = system.run(pipeline("merged-small", folder / "*.csv"))
    change = ended.json["tables"]["t.merged_small"]
    assert (ended.code, change["added_rows"], change["added_files"]) == (0, 60, 1), ended
    assert change["distribution"] == "none" and change["added_bytes"] > 0


def test_rows_are_sorted_where_asked(
    system: SystemHarness, lake: LakeReader, stack: dict[str, str], tmp_path: Path
) -> None:
    text = (
        f"name: in-order\nwrite: {{source: {{path: '{tmp_path}/1.csv'}}}}\ntables: {{t.in_order: "
        "{sort_by: [kind desc nulls last, 'truncate(2, name)'], comments: {name: what it's called}}}\n"
    )
    rows: list[dict[str, Any]] = [{"id": n, "kind": n % 3, "name": f"n{n}"} for n in range(30)]
    csv_file(tmp_path / "1.csv", rows)
    ended = system.run(text)
    change = ended.json["tables"]["t.in_order"]
    assert (ended.code, change["added_rows"], change["distribution"]) == (0, 30, "range"), ended
    table = written(stack, "t.in_order").table
    assert [(str(f.direction), str(f.null_order), str(f.transform)) for f in table.sort_order().fields] == [
        ("DESC", "NULLS LAST", "identity"), ("ASC", "NULLS FIRST", "truncate[2]"),
    ]  # fmt: skip
    assert table.schema().find_field("name").doc == "what it's called"
    kinds = [row["kind"] for row in lake.rows("t.in_order")]
    assert kinds == sorted(kinds, reverse=True) and len(kinds) == 30
    csv_file(tmp_path / "1.csv", [{**row, "id": row["id"] + 100} for row in rows])
    again = system.run(text.replace("'truncate", '"truncate').replace(")']", ')"]'))
    assert (again.code, again.json["tables"]["t.in_order"]["added_rows"]) == (0, 30), again


def test_a_compaction_is_a_run(system: SystemHarness, lake: LakeReader, stack: dict[str, str], tmp_path: Path) -> None:
    for number in range(3):
        source = csv_file(tmp_path / f"{number}.csv", [{"id": number, "kind": "x"}])
        assert system.run(pipeline("many-files", source)).code == 0
    rows = lake.rows("t.many_files")
    ended = system.run(_COMPACT)
    change = ended.json["tables"]["t.many_files"]
    assert (ended.code, ended.json["outcome"], change["operation"]) == (0, "published", "replace"), ended
    assert (change["added_files"], change["added_rows"], change["deleted_rows"]) == (1, 3, 3)
    assert sorted(row["id"] for row in lake.rows("t.many_files")) == sorted(row["id"] for row in rows)
    assert written(stack, "t.many_files").volumes() == []
    before = lake.head()
    nothing = system.run(_COMPACT)
    assert (nothing.code, nothing.json["outcome"], nothing.json["cause"]) == (0, "skipped", "nothing_to_do"), nothing
    assert "no files that are worth compacting" in nothing.json["reason"]
    assert lake.head() == before and not lake.branches("compaction")
