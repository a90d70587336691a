"""Bad input: one clear message, a documented exit code, and no leftovers."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from devstack.stack import ROOT
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


@pytest.fixture(autouse=True)
def nothing_left_behind(lake: LakeReader) -> Iterator[None]:
    before = (lake.head(), sorted(lake.branches()))
    yield
    assert (lake.head(), sorted(lake.branches())) == before


def json_file(path: Path) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


def _truncated(path: Path) -> Path:
    parquet.write_table(pa.table({"id": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-500])
    return path


@pytest.mark.slow
def test_files_that_cannot_be_loaded(system: SystemHarness, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder").mkdir()
    _truncated(tmp_path / "cut.parquet")
    for name, words in {
        "nowhere/*.csv": "there are no files at",
        "folder": "the format of",
        "empty.csv": "is empty (0 bytes)",
        "cut.parquet": "truncated",
        "data.xyz": "the format of",
    }.items():
        output = system.run_command(pipeline("unloadable", tmp_path / name))
        assert (output.code, output.json["outcome"]) == (2, None), (name, output)
        assert words in output.err and output.err.count("\n") == 1, output.err


def test_names_that_are_none(system: SystemHarness, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", ROWS)
    for table in ("t.a'b", 't.a\\"b', "t.a b", "t..b", "t.a.", "../x.y", "t.a@main", "plain", "t.a#b", "t.`a`"):
        ended = system.run(f'name: n\nwrite: {{source: {{path: "{source}"}}}}\ntables:\n  "{table}": {{}}\n')
        assert ended.code == 2 and "is not a table name" in ended.err, (table, ended)
    for branch in ("a b", "a..b", "a'b", "a@b", "/a", "a/", "x" * 300):
        ended = system.run(pipeline("n", source, more=f'branch: "{branch}"'))
        assert ended.code == 2 and "is not a branch name" in ended.err, (branch, ended)
    output = system.command("--json", TABLE_NAME="a;drop", NAMESPACE="t", S3_PATH=str(source))
    assert output.code == 2 and "NAMESPACE and TABLE_NAME: 't.a;drop' is not a table name" in output.err


def test_an_environment_that_states_no_pipeline(system: SystemHarness) -> None:
    output = system.command("--json", TABLE_NAME="cities")
    assert output.code == 2
    assert "NAMESPACE, S3_PATH are not set (see .env.example)" in output.err


def test_services_that_cannot_be_reached(system: SystemHarness, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{unused.getsockname()[1]}"
    text = pipeline("unreached", csv_file(tmp_path / "in.csv", ROWS))
    ended = system.run(text, TEMPORAL_ADDRESS=nobody)
    assert (ended.code, f"Temporal at {nobody} does not answer" in ended.err) == (7, True), ended
    assert system.command("list", TEMPORAL_ADDRESS=nobody).code == 7


@pytest.mark.slow
def test_commands_about_the_lake_say_that_they_need_a_worker(system: SystemHarness) -> None:
    commands = (("results",), ("quarantine", "list"), ("quarantine", "show", "some-run"))
    with ThreadPoolExecutor(len(commands)) as pool:  # each waits for a worker
        all_ended = pool.map(lambda each: system.command(*each, SLUICE_TASK_QUEUE="nobody-polls-this"), commands)
    for ended in all_ended:
        assert ended.code == 7, ended
        assert "no worker takes work from the task queue 'nobody-polls-this'" in ended.err


def test_a_job_that_writes_nothing(system: SystemHarness, tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("print('done')\n")
    ended = system.run(f"name: idle\nwrite: {{job: {tmp_path / 'idle.py'}}}\ntables: [t.idle]\n")
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (6, "failed", 1), ended
    assert "wrote nothing to t.idle" in ended.json["reason"]


def test_a_job_that_writes_what_it_does_not_name(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    (tmp_path / "sly.py").write_text(
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
        "for name in ('t.named', 't.unnamed'): spark.range(1).writeTo(name).create()\n"
    )
    ended = system.run(f"name: sly\nwrite: {{job: {tmp_path / 'sly.py'}}}\ntables: [t.named]\non_failure: discard\n")
    assert (ended.code, ended.json["outcome"]) == (6, "failed")
    assert "changed t.unnamed" in ended.json["reason"]
    lake.discard(ended.json["branch"])  # an unexpected change is kept for inspection


def test_input_that_does_not_fit(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    """A missing column, or a value of another type, fails the run and leaves no branch.

    If a header names the columns, the command starts no run.
    """
    source = csv_file(tmp_path / "in.csv", ROWS)
    refused = system.run_command(pipeline("unfit", source, "[not_null: nmae]"))
    assert (refused.code, refused.json["outcome"]) == (2, None)
    assert "not_null: t.unfit: the input has no column 'nmae' (did you mean 'name'?)" in refused.err
    ended = system.run(pipeline("unfit", json_file(tmp_path / "in.json"), "[not_null: nmae]"))
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (6, "failed", 1)
    assert "'nmae'" in ended.json["reason"] and "did you mean 'name'?" in ended.json["reason"]
    named = csv_file(tmp_path / "named.csv", [{"id": 1, "name": "Meier4711"}])
    typed = pipeline("typed", named).replace('csv"', 'csv", schema: "id INT, name INT"')
    ended = system.run(typed)
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (6, "failed", 1)
    assert "\n" not in ended.json["reason"] and "Meier4711" not in ended.json["reason"]


@pytest.mark.slow
def test_the_wrong_java(system: SystemHarness, tmp_path: Path) -> None:
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    output = subprocess.run(
        [sys.executable, str(ROOT / "worker.py")],
        env={**os.environ, **system.environment, "JAVA_HOME": str(tmp_path / "old")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert output.returncode == 2
    assert "Spark 4.1 needs Java 17 or 21" in output.stderr and "is Java 11" in output.stderr


def test_checks_that_cannot_be_asked(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = json_file(tmp_path / "in.json")  # its columns are unknown until Spark reads it
    file = "\n".join(f"      - {each}" for each in (
        "not_null: nmae", "match_regex: {column: id, pattern: a}", "accepted_values: {column: name, values: [1]}",
        "relationships: {column: id, to: t.nowhere, field: id}", "sql: SELECT * FROM t.nobody",
        "unique: {column: name, where: idd > 1}",
    ))  # fmt: skip
    text = f'name: asked\nwrite:\n  source: {{path: "{source}"}}\ntables:\n  t.asked:\n    checks:\n{file}\n'
    messages = {
        7: "not_null: t.asked: there is no column 'nmae' (did you mean 'name'?)",
        8: "match_regex: t.asked: 'id' is ",
        9: "accepted_values: t.asked: 'name' is string: 1 is not a text: write it in quotes",
        10: "relationships: there is no table t.nowhere on main",
        11: "sql: there is no table t.nobody on main",
        12: "unique: t.asked: there is no column 'idd'",
    }
    ended = system.run(text)
    assert (ended.code, ended.json["outcome"]) == (6, "failed"), ended.err  # missing foreign tables are found first
    assert all(f"yml:{line}: {words}" in ended.json["reason"] for line, words in messages.items() if line in (10, 11))
    ended = system.run("\n".join(line for number, line in enumerate(text.splitlines(), 1) if number not in (10, 11)))
    moved = {7: 7, 8: 8, 9: 9, 10: 12}  # the table does not exist yet: the rows show the error before any is written
    assert (ended.code, ended.json["outcome"]) == (6, "failed"), ended.err
    for line, was in moved.items():
        assert f"yml:{line}: {messages[was]}" in ended.json["reason"], ended.json["reason"]
    assert "main_after" in ended.json and not lake.rows("t.asked")
