"""The command `backfill` as far as it needs no server: its refusals, its plan, and its grid."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from temporalio.service import RPCError, RPCStatusCode
from typer.testing import CliRunner

from cli.app import app
from cli.backfills.commands import _fields
from cli.backfills.grid import ShownPartitions, describe_backfill, grid_rows, print_failures
from cli.backfills.start import StartBackfill
from cli.layout import joined
from sluice.backfills.progress import LETTERS
from sluice.contracts.backfill import BackfillState, BackfillStatus, JointPublish, PartitionNote, PartitionState
from sluice.errors import InvalidPipeline
from sluice.identifiers import backfill_id
from sluice.presentation.backfills import shown_counts
from sluice.settings import Settings
from tests.harness.lake_client import reach


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name in ("2018-01", "2018-02"):
        (tmp_path / f"{name}.csv").write_text("id\n1\n")
    path = tmp_path / "rides.yml"
    path.write_text(
        "name: rides\n"
        f'write: {{source: {{path: "{tmp_path}/{{{{ partition }}}}.csv"}}}}\n'
        "tables: {t.rides: {checks: [not_null: [id]]}}\n"
    )
    return path


def command(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["backfill", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_plan_says_what_each_partition_would_load(file: Path) -> None:
    code, out, _ = command(str(file), "--partitions", "2018-01..2018-03", "--dry-run", "--json")
    assert code == 2, "one would fail"
    planned = json.loads(out)["partitions"]
    assert [(each["partition"], each["files"], each["bytes"]) for each in planned] == [
        ("2018-01", 1, 5), ("2018-02", 1, 5), ("2018-03", 0, 0),
    ]  # fmt: skip
    assert "there are no files" in planned[2]["problem"] and not planned[1]["problem"]
    assert command("start", str(file), "--partitions", "2018-01", "--dry-run")[0] == 0


def test_the_plan_says_that_it_was_not_compared_with_main(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    asked = (str(file), "--partitions", "2018-01..2018-02", "--dry-run")
    code, out, _ = command(*asked)
    shown = " ".join(out.split())
    assert code == 0 and "Not compared with main and landing zones: Temporal at 127.0.0.1:1 does not answer" in shown
    assert "does not answer" in json.loads(command(*asked, "--json")[1])["not_compared"]


@pytest.mark.parametrize("action", ["status", "pause", "retry"])
def test_a_misspelled_pipeline_gets_a_suggestion(monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    async def describe() -> None:
        raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")

    async def list_workflows(_: str, limit: int) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(id=backfill_id("here", "rides"))

    def handle(_: object, id: str) -> SimpleNamespace:
        return SimpleNamespace(id=id, describe=describe, execute_update=describe)

    reach(monkeypatch, SimpleNamespace(get_workflow_handle_for=handle, list_workflows=list_workflows), "here")
    code, _, err = command(action, "ridse")
    assert code == 2 and "(did you mean 'rides'?)" in err, err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the partitions"),
        (["--partitions", "2018-02..2018-01"], "goes backwards"),
        (["--partitions", "2018", "--only", "missing", "--again"], "give one"),
        (["--partitions", "x' y"], "is not a valid name of a partition"),
    ],
)
def test_wrong_use_is_refused_before_anything_starts(file: Path, arguments: list[str], message: str) -> None:
    code, _, err = command(str(file), *arguments)
    assert code == 2 and message in err and err.count("\n") == 1


def test_partitions_whose_files_main_does_not_remember_are_not_published_together(tmp_path: Path) -> None:
    path = tmp_path / "rides.yml"
    statement = "INSERT INTO lake.t.rides SELECT '{{ partition }}' AS id"
    path.write_text(f'name: rides\nwrite: {{mode: sql, statements: ["{statement}"]}}\ntables: {{t.rides: {{}}}}\n')
    code, _, err = command(str(path), "--partitions", "2018..2019", "--publish", "together")
    assert code == 2 and "a record on main of each loaded file" in err


@pytest.mark.parametrize(
    ("check", "partitions", "message"),
    [
        ("accepted_values: {column: month, values: ['{{ partition.month }}']}", "2018-01..2018-02", "partition.month"),
        ("accepted_range: {column: day, min: '{{ partition.start }}'}", "2018,emea,2019", "'emea..2019' has no start"),
    ],
)
def test_a_pipeline_that_is_not_valid_for_all_partitions_is_not_published_together(
    file: Path, check: str, partitions: str, message: str
) -> None:
    """An earlier version refused it only after all of them had run."""
    file.write_text(file.read_text().replace("not_null: [id]", check))
    code, _, err = command(str(file), "--partitions", partitions, "--publish", "together")
    assert code == 2 and message in err


def test_together_a_pipeline_may_differ_by_its_path_and_the_range_of_days(file: Path) -> None:
    check = "accepted_range: {column: day, min: '{{ partition.start }}', max: '{{ partition.end }}'}"
    text = file.read_text().replace("not_null: [id]", check).replace("{{ partition }}", "2018-{{ partition.month }}")
    file.write_text(f"{text}description: of {{{{ partition.month }}}}\n")
    asked = ("--partitions", "2018-01..2018-02", "--publish", "together", "--dry-run")
    assert command(str(file), *asked)[0] == 0


def test_a_catalog_that_merges_into_main_alone_publishes_nothing_together(file: Path) -> None:
    asked = StartBackfill(file, "2018-01..2018-02", None, 4, 3, "together", again=False)
    context = cast(Any, SimpleNamespace(settings=Settings.of(catalog="sql"), client=None))
    with pytest.raises(InvalidPipeline, match="with an Iceberg catalog the partitions are published one by one"):
        asyncio.run(asked.select(context, asked.prepare()))


def test_a_pipeline_that_is_the_same_for_each_partition_is_refused(file: Path) -> None:
    file.write_text(file.read_text().replace("{{ partition }}", "2018-01"))
    for partitions in ("2018-01..2018-02", "2018-01", "emea"):
        code, _, err = command(str(file), "--partitions", partitions)
        assert code == 2 and "is the same for each partition" in err


@pytest.mark.parametrize(("placeholder", "partition"), [("partition.month", "2018-11"), ("partition", "emea")])
def test_a_single_partition_is_enough_where_the_pipeline_names_it(file: Path, placeholder: str, partition: str) -> None:
    file.write_text(file.read_text().replace("{{ partition }}", f"{{{{ {placeholder} }}}}"))
    for name in ("11", "emea"):
        (file.parent / f"{name}.csv").write_text("id\n1\n")
    code, _, err = command(str(file), "--partitions", partition, "--dry-run")
    assert code == 0, err


def transforming(file: Path, placeholder: str, path: str = "*.csv") -> None:
    file.write_text(
        f'name: rides\nwrite: {{source: {{path: "{file.parent}/{path}"}}, '
        f"transform: \"SELECT * FROM source WHERE id = '{{{{ {placeholder} }}}}'\"}}\n"
        "tables: [t.rides]\n"
    )


def test_the_plan_says_that_partitions_load_the_same_files(file: Path) -> None:
    """An earlier version counted 3 files for 3 partitions that each load the same file."""
    transforming(file, "partition", "2018-01.csv")
    code, out, _ = command(str(file), "--partitions", "2018-01..2018-03", "--dry-run")
    assert code == 0 and "3 partitions, 1 file, 5 bytes: the same for each partition, 4 at a time" in " ".join(
        out.split()
    )
    transforming(file, "partition", "{{ partition.year }}-*.csv")
    _, out, _ = command(str(file), "--partitions", "2018-01,2018-02,2019-01", "--dry-run")
    assert "3 partitions, 2 files, 10 bytes: several partitions load the same" in " ".join(out.split())
    _, out, _ = command(str(file), "--partitions", "2018-01,2018-02", "--dry-run", "--json")
    assert [each["paths"] for each in json.loads(out)["partitions"]] == [[f"{file.parent}/2018-*.csv"]] * 2


@pytest.mark.parametrize("path", ["*.csv", "{{ partition.year }}*.csv"])
def test_partitions_that_write_the_same_are_refused_with_both_names(file: Path, path: str) -> None:
    transforming(file, "partition.year", path)
    code, _, err = command(str(file), "--partitions", "2017-12..2018-02", "--dry-run")
    assert code == 2 and "writes the same for 2018-01 and 2018-02" in err and "{{ partition.year }}" in err
    (file.parent / "2017-12.csv").write_text("id\n1\n")
    assert command(str(file), "--partitions", "2017..2018", "--dry-run")[0] == 0
    assert command(str(file), "--partitions", "2018-01", "--dry-run")[0] == 0


def test_a_partition_in_a_check_alone_makes_no_partitions(file: Path) -> None:
    file.write_text(file.read_text().replace("{{ partition }}", "2018-01").replace("[id]", '["{{ partition }}"]'))
    code, _, err = command(str(file), "--partitions", "2018-01..2018-02", "--dry-run")
    assert code == 2 and "is the same for each partition" in err


def test_the_last_partition_is_validated_too(file: Path) -> None:
    file.write_text(file.read_text().replace("{{ partition }}", "{{ partition.month }}"))
    code, _, err = command(str(file), "--partitions", "2018-01,2018")
    assert code == 2 and "'2018' has no month" in err


def progress(*states: PartitionState, **more: str) -> BackfillState:
    names = [f"{2018 + number // 12}-{number % 12 + 1:02}" for number in range(len(states))]
    return BackfillState(partitions=names, letters="".join(LETTERS[state] for state in states), **more)


def test_the_grid_has_a_row_for_each_year_and_a_mark_for_each_month() -> None:
    first_year: list[PartitionState] = ["published"] * 11
    shown = progress(*first_year, "kept out", "running", "waiting", "failed", "skipped", "cancelled")
    assert [row.plain.strip() for row in grid_rows(shown, 80)] == ["2018 ###########!", "2019 >·x=-"]


def test_a_large_grid_begins_with_what_is_not_done() -> None:
    names = [f"p{number}" for number in range(5000)]
    shown = BackfillState(partitions=names, letters="p" * 2500 + "w" * 2500)
    rows = [row.plain for row in grid_rows(shown, 80)]
    assert len(rows) == 22 and rows[0] == "… 50 rows above" and rows[-1] == "… 30 rows below"
    assert rows[1].split()[0] == "p2500"


def test_a_run_that_waits_for_approval_is_named_with_its_stage() -> None:
    status = BackfillStatus(
        name="rides", starter="ada", pipeline="p.yml", children={"2018-02": "child"},
        progress=progress("published", "running", "waiting", paused="by ada: lunch"),
    )  # fmt: skip
    lines = [line.plain for line in describe_backfill(status, {"2018-02": "waiting for approval"}, 100)]
    assert lines[1:] == [
        "> 2018-02: waiting for approval",
        "rides: 3 partitions  · 1 waiting  > 1 running  # 1 published  4 at a time",
        "paused by ada: lunch",
    ]


@pytest.mark.parametrize(
    ("outcome", "counts"), [("", {"collected": 2}), ("failed", {"collected": 2}), ("published", {"published": 2})]
)
def test_partitions_of_a_joint_backfill_count_as_published_once_they_are_on_main(
    outcome: str, counts: dict[str, int]
) -> None:
    """Earlier, `list` and --json said "published" although the merge of all partitions had failed."""
    ended = {"ended": {"outcome": outcome}} if outcome else {}
    status = BackfillStatus(
        name="rides", starter="ada", pipeline="p.yml", progress=progress("published", "published"),
        together=JointPublish.model_validate(ended),
    )  # fmt: skip
    assert {state: number for state, number in shown_counts(status).items() if number} == counts
    fields = _fields(status)
    assert {each["state"] for each in fields["partitions"].values()} == {*counts}
    assert {state: number for state, number in fields["counts"].items() if number} == counts


def test_the_first_failed_partitions_are_listed_with_their_reasons() -> None:
    output = io.StringIO()
    nine: list[PartitionState] = ["failed"] * 9
    failed = progress(*nine, "published")
    failed = failed.model_copy(update={"notes": {"2018-01": PartitionNote(outcome="failed", reason="no files")}})
    status = BackfillStatus(name="rides", starter="ada", pipeline="rides.yml", progress=failed)
    print_failures(Console(file=output, width=80), status)
    lines = output.getvalue().splitlines()
    assert lines[0].split() == ["failed", "2018-01", "no", "files"] and "2018-10" not in output.getvalue()
    assert len(lines) == 9 and lines[-1].strip() == "and 1 more"


@pytest.mark.parametrize("terminal", [True, False])
def test_an_end_keeps_its_run_and_its_whole_reason(*, terminal: bool) -> None:
    """They take lines of their own on a terminal. Elsewhere they are one line that programs can read."""
    output = io.StringIO()
    shown = ShownPartitions(Console(file=output, width=80, force_terminal=terminal, color_system=None))
    reason = "not_null(passenger_count) of nyc.rides\nunique(ride_id): " + "observed 12 of 48,231 rows " * 15
    note = PartitionNote(outcome="quarantined", cause="audit", reason=reason, workflow_id="rides-4f6b2a1c9d3e")
    ended = progress("kept out").model_copy(update={"notes": {"2018-01": note}})
    shown.update(BackfillStatus(name="rides", starter="ada", pipeline="rides.yml", progress=ended))
    lines = output.getvalue().splitlines()
    assert " ".join(output.getvalue().split()) == f"kept out 2018-01 rides-4f6b2a1c9d3e {joined(reason)}"
    if terminal:
        assert lines[0].split() == ["kept", "out", "2018-01", "rides-4f6b2a1c9d3e"]
        assert max(map(len, lines)) <= 80
    else:
        assert len(lines) == 1 and "rides-4f6b2a1c9d3e  not_null" in lines[0]


def test_a_status_is_printed_whole() -> None:
    """Only the picture that replaces itself on a terminal cuts its lines."""
    status = BackfillStatus(
        name="rides", starter="ada", pipeline="p.yml", children={"2018-01": "c"},
        progress=progress("running", paused="by ada: " + "x" * 90),
    )  # fmt: skip
    stages = {"2018-01": "waiting for approval, " + "y" * 90}
    whole = [line.plain for line in describe_backfill(status, stages, 80)]
    assert f"> 2018-01: {stages['2018-01']}" in whole and f"paused {status.progress.paused}" in whole
    assert max(len(line.plain) for line in describe_backfill(status, stages, 80, cuts=True)) <= 80


def test_each_end_is_printed_once_with_its_reason() -> None:
    output = io.StringIO()
    shown = ShownPartitions(Console(file=output, width=140))
    first = BackfillStatus(name="rides", starter="ada", pipeline="rides.yml", progress=progress("published", "running"))
    shown.update(first)
    shown.update(first)
    note = PartitionNote(outcome="quarantined", cause="audit", reason="not_null failed", workflow_id="rides-1")
    second = progress("published", "kept out").model_copy(update={"notes": {"2018-02": note}})
    shown.update(first.model_copy(update={"progress": second}))
    assert [" ".join(line.split()) for line in output.getvalue().splitlines()] == [
        "published 2018-01",
        "kept out 2018-02 rides-1 not_null failed",
    ]
