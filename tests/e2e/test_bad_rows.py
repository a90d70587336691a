"""Row quarantine: one merge publishes the good rows, and moves bad rows to a table of their own."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file
from tests.harness.system import SystemHarness

PIPELINE = """\
name: {name}
write:
  source: {{path: "{source}"}}
tables:
  t.{name}:
    on_bad_rows: quarantine
    max_bad_rows: {cap}
    checks:
      - not_null: label
      - unique: id
      - accepted_range: {{column: amount, min: 0}}
"""
ROWS: list[dict[str, Any]] = [
    {"id": 1, "label": "a", "amount": 5},
    {"id": 2, "label": None, "amount": -5},
    {"id": 3, "label": "c", "amount": 7},
    {"id": 3, "label": "c", "amount": 7},
    {"id": 4, "label": "d", "amount": -1},
    {"id": 5, "label": "e", "amount": 0},
]
NEXT: list[dict[str, Any]] = [{"id": 1, "label": "again", "amount": 1}, {"id": 6, "label": "f", "amount": 1}]


def written(name: str, source: Path, cap: int = 10) -> str:
    return PIPELINE.format(name=name, source=source, cap=cap)


def apart(lake: LakeReader, name: str) -> list[tuple[Any, ...]]:
    rows = lake.rows(f"t.{name}__quarantine")
    return sorted((row["id"], sorted(row["quarantined_checks"]), row["amount"]) for row in rows)


@pytest.mark.slow
def test_bad_rows_are_set_apart_in_the_same_merge(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", ROWS)
    before = lake.head()
    planned = system.command("plan", str(system.file(written("parted", source))))
    assert planned.code == 0 and "Guarantee: atomic: readers see the whole load or nothing" in planned.out, planned
    ended = system.run(written("parted", source))
    result = ended.json
    assert (ended.code, result["outcome"], result["bad_rows"]) == (0, "published", {"t.parted": 4}), ended.err
    assert "4 bad rows of t.parted went to t.parted__quarantine" in result["reason"]
    assert sorted(row["id"] for row in lake.rows("t.parted")) == [1, 5]
    assert apart(lake, "parted") == [
        (2, ["accepted_range(amount)", "not_null(label)"], -5),
        (3, ["unique(id)"], 7),
        (3, ["unique(id)"], 7),
        (4, ["accepted_range(amount)"], -1),
    ]
    (row, *_) = lake.rows("t.parted__quarantine")
    assert row["quarantined_run"] == result["run_id"]
    assert str(row["quarantined_at"])[:10] == lake.commit(result["main_after"])["commitTime"][:10]
    assert lake.commit(result["main_after"])["parentCommitHashes"][0] == before  # one commit for both tables
    assert {check["verdict"] for check in result["checks"]} == {"pass"}
    assert result["tables"]["t.parted__quarantine"]["added_rows"] == 4
    assert not lake.branches("parted")

    more = csv_file(tmp_path / "more.csv", NEXT)
    ended = system.run(written("parted", more))
    assert (ended.code, ended.json["bad_rows"]) == (0, {"t.parted": 1}), ended.err
    assert sorted(row["id"] for row in lake.rows("t.parted")) == [1, 5, 6]  # main's own row stays

    file = str(system.file(written("parted", source)))
    again = ["requeue", file, "--run", result["run_id"], "--json", "--yes"]
    # Not repaired: the row breaks the same checks, and stays where it is.
    requeued = system.command(*again, "--where", "id = 2")
    assert (requeued.code, requeued.json["bad_rows"]) == (0, {"t.parted": 1}), requeued.err
    assert [row[0] for row in apart(lake, "parted")] == [1, 2, 3, 3, 4]

    requeued = system.command(
        "requeue", file, "--set", "amount=abs(amount)", "--set", "label=coalesce(label, 'x')", "--json", "--yes"
    )
    assert (requeued.code, requeued.json["bad_rows"]) == (0, {"t.parted": 3}), requeued.err
    repaired = [(1, 5), (2, 5), (4, 1), (5, 0), (6, 1)]
    assert sorted((row["id"], row["amount"]) for row in lake.rows("t.parted")) == repaired
    assert [row[0] for row in apart(lake, "parted")] == [1, 3, 3]

    for wrong, words in (
        ("nope=1", "'nope' is not a column"),
        ("amount=sum(amount)", "aggregates"),
        ("amount=amont", "'amont'"),
    ):
        requeued = system.command("requeue", file, "--set", wrong)
        assert requeued.code == 2 and words in requeued.err, requeued.err


MERGING = """\
name: {name}
write:
  source: {{path: "{source}"}}
  mode: merge
  keys: [id]
tables:
  t.{name}:
    properties: {{write.merge.mode: {how}, write.delete.mode: {how}}}
    {quarantine}
    checks:
      - not_null: label
      - accepted_range: {{column: amount, min: 0}}
"""
QUARANTINE = "on_bad_rows: quarantine\n    max_bad_rows: 3"


@pytest.mark.slow
def test_a_worker_moves_bad_rows_as_spark_does(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """Spark moves the rows of a repeated key, and the worker those that break a check of single rows."""
    unlike, runs = [row for number, row in enumerate(ROWS) if number != 3], {}
    for first, rows, count in ((0, unlike, 2), (10, ROWS, 4), (20, unlike, 2)):
        source = csv_file(tmp_path / "in.csv", [{**row, "id": row["id"] + first} for row in rows])
        ended = system.run(written("alike", source))
        assert (ended.code, ended.json["bad_rows"]) == (0, {"t.alike": count}), ended.err
        assert (
            ended.json["broken_checks"]["t.alike"].items()
            >= {"accepted_range(amount)": 2, "not_null(label)": 1}.items()
        )
        runs[ended.json["run_id"]] = first
    by_run: dict[str, list[tuple[Any, ...]]] = {run: [] for run in runs}
    for row in sorted(lake.rows("t.alike__quarantine"), key=lambda row: int(row["id"])):
        run = row["quarantined_run"]
        moved = (row["id"] - runs[run], row["label"], row["amount"], sorted(row["quarantined_checks"]))
        by_run[run] += [moved] if moved[-1] != ["unique(id)"] else []
    of_worker, of_spark, of_worker_again = by_run.values()
    assert of_worker == of_spark == of_worker_again and len(of_worker) == 2
    assert sorted(row["id"] for row in lake.rows("t.alike")) == [1, 3, 5, 11, 15, 21, 23, 25]
    assert lake.is_by_spark("t.alike__quarantine") == [False, True, False]
    assert lake.is_by_spark("t.alike") == [True, False, True, True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["copy-on-write", "merge-on-read"])
def test_a_merge_moves_what_it_brought_and_changed_and_nothing_else(
    system: SystemHarness, lake: LakeReader, tmp_path: Path, how: str
) -> None:
    name = "merged_" + how.replace("-", "_")
    loose = MERGING.replace("not_null: label", "row_count: 1").replace("min: 0", "min: -100")
    first: list[dict[str, Any]] = [{"id": 1, "label": "a", "amount": 5}, {"id": 2, "label": None, "amount": -5}]
    first += [{"id": 3, "label": "c", "amount": 7}, {"id": 4, "label": "d", "amount": 8}]
    source = csv_file(tmp_path / "1.csv", first)
    ended = system.run(loose.format(name=name, how=how, source=source, quarantine="on_bad_rows: fail"))
    assert ended.code == 0, ended.err
    # 2 is bad and unchanged; the update of 3 is bad, that of 1 is good; 5 is a bad new row, 6 a good one.
    more: list[dict[str, Any]] = [{"id": 1, "label": "b", "amount": 6}, {"id": 3, "label": "x", "amount": -1}]
    more += [{"id": 5, "label": None, "amount": 1}, {"id": 6, "label": "f", "amount": 0}]
    source = csv_file(tmp_path / "2.csv", more)
    merging = MERGING.format(name=name, how=how, source=source, quarantine=QUARANTINE)
    ended = system.run(merging)
    assert (ended.code, ended.json["bad_rows"]) == (0, {f"t.{name}": 2}), ended.err
    rows = sorted((row["id"], row["label"], row["amount"]) for row in lake.rows(f"t.{name}"))
    assert rows == [(1, "b", 6), (2, None, -5), (3, "c", 7), (4, "d", 8), (6, "f", 0)]
    assert apart(lake, name) == [(3, ["accepted_range(amount)"], -1), (5, ["not_null(label)"], 1)]

    requeued = system.command(
        *("requeue", str(system.file(merging)), "--where", "id = 3", "--set", "amount=abs(amount)", "--json", "--yes")
    )
    assert requeued.code == 0, requeued.err
    rows = sorted((row["id"], row["label"], row["amount"]) for row in lake.rows(f"t.{name}"))
    assert rows == [(1, "b", 6), (2, None, -5), (3, "x", 1), (4, "d", 8), (6, "f", 0)]
    assert [row[0] for row in apart(lake, name)] == [5]


def test_a_merge_says_what_it_inserted_and_updated(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """Rows that the merge wrote unchanged are not counted as changed."""
    loose = MERGING.replace("not_null: label", "row_count: 1").replace("{how}", "copy-on-write")
    for name, ids in (("1.csv", range(10)), ("2.csv", range(7, 17))):
        source = csv_file(tmp_path / name, [{"id": each, "label": "a", "amount": 1} for each in ids])
        ended = system.run(loose.format(name="counted", source=source, quarantine="on_bad_rows: fail"))
    assert ended.code == 0, ended.err
    assert ended.json["tables"]["t.counted"]["rows"] == {
        "inserted": 7,
        "updated": 3,
        "removed": 0,
        "replaced": 0,
        "rewritten": 7,
        "known_by": "keys of the input",
    }
    shown = system.command("status", ended.json["workflow_id"]).out
    assert "7 inserted, 3 updated (7 rewritten unchanged)" in shown and len(lake.rows("t.counted")) == 17


def test_above_the_cap_the_whole_run_is_kept_out(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", ROWS)
    before = lake.head()
    ended = system.run(written("capped", source, cap=3))
    assert (ended.code, ended.json["outcome"], lake.head()) == (3, "quarantined", before), ended.err
    assert "more bad rows than the pipeline allows to quarantine: 4 of t.capped" in ended.json["reason"]
    kept = ended.json["branch"]
    assert len(lake.rows("t.capped", kept)) == 6 and not lake.rows("t.capped__quarantine", kept)
    lake.discard(kept)


@pytest.mark.slow
def test_strange_column_names_all_the_way(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("it's a.b,select,größe 日本\n1,x,5\n2,y,-5\n2,z,1\n,w,3\n")
    ended = system.run(f"""\
name: strange
write:
  source: {{path: "{tmp_path}/in.csv"}}
tables:
  t.strange:
    on_bad_rows: quarantine
    max_bad_proportion: 1
    checks:
      - not_null: "it's a.b"
      - unique: "it's a.b"
      - accepted_range: {{column: größe 日本, min: 0, where: "`select` <> 'q'"}}
      - match_regex: {{column: select, pattern: "^[w-z]$"}}
      - expression_is_true: {{expression: "`it's a.b` IS NULL OR `größe 日本` < 100"}}
""")
    assert (ended.code, ended.json["bad_rows"]) == (0, {"t.strange": 3}), ended.err
    assert lake.rows("t.strange") == [{"it's a.b": 1, "select": "x", "größe 日本": 5}]
    assert sorted(str(row["select"]) for row in lake.rows("t.strange__quarantine")) == ["w", "y", "z"]


@pytest.mark.slow
def test_a_row_that_main_made_bad_meanwhile(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """Bad rows of rebased files are quarantined on the newer main: a key that was new has become a duplicate there."""
    good = [{"id": number, "label": "x", "amount": number} for number in (1, 5, 6)]
    assert system.run(written("met_again", csv_file(tmp_path / "1.csv", good[:1]))).code == 0
    reviewed = written("met_again", csv_file(tmp_path / "2.csv", good[1:])) + "approval: {timeout: 1h}\n"
    run = system.start(reviewed)
    system.wait_for_stage(run, "waiting for approval")
    assert system.run(written("met_again", csv_file(tmp_path / "3.csv", [{**good[1], "amount": 50}]))).code == 0
    system.approve(run)
    again = system.wait_for_attempt(run, 2)
    assert ([each["resolved"] for each in again["conflicts"]], again["bad_rows"]) == (
        ["rebased"],
        {"t.met_again": 1},
    )
    system.approve(run)
    ended = system.wait_for_end(run)
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert sorted((row["id"], row["amount"]) for row in lake.rows("t.met_again")) == [(1, 1), (5, 50), (6, 6)]
    assert apart(lake, "met_again") == [(5, ["unique(id)"], 5)]
