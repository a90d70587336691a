"""Rows that replace others: older rows after younger ones, and a table that was dropped and created again."""

from pathlib import Path

import pytest

from lakehouse.catalog import TableCommit
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

_PRICES = """\
name: prices
write:
  source: {{path: "{folder}/{{{{ partition }}}}.csv"}}
  mode: merge
  keys: [id]
tables:
  t.prices:
    checks: [not_null: id]
"""


@pytest.mark.slow
def test_older_rows_win_only_where_a_person_says_so(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    for month, price in (("2026-01", 10), ("2026-02", 20)):
        csv_file(tmp_path / f"{month}.csv", [{"id": 1, "price": price}])
    file = str(system.file(_PRICES.format(folder=tmp_path)))
    younger = system.command("run", file, "--partition", "2026-02", "--json")
    assert younger.code == 0, younger.err
    older = system.command("run", file, "--partition", "2026-01", "--json")
    assert older.code != 0 and "--over-younger" in older.out + older.err, older
    assert [row["price"] for row in lake.rows("t.prices")] == [20]
    refused = system.command("backfill", file, "--partitions", "2026-01..2026-02", "--json")
    assert refused.code == 2 and "2026-01 is older than 2026-02" in refused.out + refused.err, refused
    unknown = system.command("backfill", "status", "prices", "--json")
    assert unknown.code != 0, "no backfill was started"
    stated = system.command("run", file, "--partition", "2026-01", "--over-younger", "--json")
    assert stated.code == 0 and [row["price"] for row in lake.rows("t.prices")] == [10], stated


@pytest.mark.slow
def test_a_price_that_comes_again_in_a_new_file_is_loaded_only_where_a_person_says_so(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    text = _PRICES.format(folder=tmp_path).replace("{{ partition }}", "day-*").replace("prices", "days")
    file = str(system.file(text))
    for day, price in enumerate((10, 20), 1):
        csv_file(tmp_path / f"day-{day}.csv", [{"id": 1, "price": price}])
        assert system.command("run", file, "--json").code == 0
    csv_file(tmp_path / "day-3.csv", [{"id": 1, "price": 10}])
    refused = system.command("run", file, "--json")
    assert refused.code != 0 and "day-3.csv has the content of" in refused.out + refused.err, refused
    assert [row["price"] for row in lake.rows("t.days")] == [20]
    assert system.command("run", file, "--over-younger", "--json").code == 0
    assert [row["price"] for row in lake.rows("t.days")] == [10]
    again = system.command("run", file, "--json")
    assert '"outcome":"skipped"' in again.out, again


@pytest.mark.slow
def test_a_table_that_was_dropped_and_created_is_another_one(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    first, second, third = (csv_file(tmp_path / f"{number}.csv", [{"id": number}]) for number in (1, 2, 3))
    assert system.run(pipeline("replaced", first)).code == 0
    run = system.start(pipeline("replaced", second, more="approval: {timeout: 1h}"))
    system.wait_for_stage(run, "waiting for approval")
    catalog = open_catalog(read_settings(system.environment))  # the table of another program
    catalog.commit_tables(catalog.main, catalog.head(catalog.main), "drop", [TableCommit("t.replaced", None)])
    assert system.run(pipeline("replaced", third)).code == 0
    system.approve(run)
    ended = system.wait_for_end(run)
    assert ended.code != 0 and "is another table than the one" in ended.json["reason"], ended
    lake.discard(ended.json["branch"])
    assert [row["id"] for row in lake.rows("t.replaced")] == [3]
    for source in (first, second):
        again = system.run(pipeline("replaced", source))
        assert (again.code, again.json["outcome"]) == (0, "published"), again
    assert sorted(row["id"] for row in lake.rows("t.replaced")) == [1, 2, 3]
