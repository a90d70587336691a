"""The default engine on real runs: built-in jobs on a warm server, programs by spark-submit, with the same results."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file
from tests.harness.system import SystemHarness

_RDD = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
numbers = spark.sparkContext.parallelize([1, 2, 3]).map(lambda each: (each,))
spark.createDataFrame(numbers, ["id"]).writeTo("t.of_rdd").create()
"""
"""A program that a session on a server cannot run."""
_SESSION = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.createDataFrame([(type(spark).__module__,)], ["session"]).writeTo("t.of_session").create()
"""
"""A program that tells its kind of session."""
_LOAD = """\
name: {name}
write: {{source: {{path: "{path}", format: {format}}}, mode: {mode}{more}}}
tables:
  t.{name}:
    partition_by: [kind]
    on_bad_rows: quarantine
    max_bad_rows: 5
    checks:
      - not_null: amount
      - unique: id
      - sql: "SELECT id FROM t.{name} WHERE id > 100"
"""
_FIRST = {
    "id": [1, 2, 3, 4],
    "kind": ["a", "a", "b", "c"],
    "amount": [1.25, 2.5, None, 4.0],
    "text": ["x", "ü", "", "z"],
}
_SECOND = {"id": [3, 4, 5], "kind": ["b", "b", "d"], "amount": [30.0, None, 5.5], "text": ["new", "new", "new"]}


def _run(system: SystemHarness, text: str) -> dict[str, Any]:
    ended = system.run(text)
    assert ended.json["outcome"] == "published", ended
    return ended.json


def _jobs(variables: dict[str, str], result: dict[str, Any], file: str) -> list[Path]:
    """Return the files of this name in the folders of a run's jobs. Only an application has `spark.properties`."""
    files = (Path(variables["SLUICE_HOME"]) / "runs").glob(f"**/{file}")
    return [each for each in files if result["run_id"] in str(each)]


def _warm_servers(variables: dict[str, str]) -> list[Path]:
    """Return the configurations of the warm servers that the worker started."""
    return list((Path(variables["SLUICE_HOME"]) / "warm").glob("*/spark.properties"))


def test_a_load_is_warm_and_a_program_has_a_spark_of_its_own(
    automatic: dict[str, str], system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    warm = SystemHarness(tmp_path, {**system.environment, **automatic})
    source = csv_file(
        tmp_path / "in.csv", [{"id": 1, "kind": "a", "amount": 1}, {"id": 2, "kind": "b", "amount": None}]
    )
    result = _run(warm, _LOAD.format(name="is_warm", path=source, format="csv", mode="append", more=""))
    assert result["bad_rows"] == {"t.is_warm": 1}
    assert [row["id"] for row in lake.rows("t.is_warm")] == [1]
    assert _jobs(automatic, result, "spark.log") and not _jobs(automatic, result, "spark.properties")

    (tmp_path / "of_rdd.py").write_text(_RDD)
    program = _run(warm, f"name: of-rdd\nwrite: {{job: {tmp_path / 'of_rdd.py'}}}\ntables: [t.of_rdd]\n")
    assert sorted(row["id"] for row in lake.rows("t.of_rdd")) == [1, 2, 3]
    assert _jobs(automatic, program, "spark.properties")

    servers = len(_warm_servers(automatic))
    (tmp_path / "of_session.py").write_text(_SESSION)
    text = f"name: of-session\nwrite: {{job: {tmp_path / 'of_session.py'}, engine: connect}}\ntables: [t.of_session]\n"
    shared = _run(warm, text)
    assert [row["session"].split(".")[2] for row in lake.rows("t.of_session")] == ["connect"]
    assert _jobs(automatic, shared, "spark.log") and not _jobs(automatic, shared, "spark.properties")
    assert len(_warm_servers(automatic)) == servers + 1, "programs share no server with built-in jobs"


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_partitions", "merge"])
@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
def test_warm_and_cold_runs_have_the_same_results(
    format: str,
    mode: str,
    automatic: dict[str, str],
    stack: dict[str, str],
    system: SystemHarness,
    lake: LakeReader,
    tmp_path: Path,
) -> None:
    results = {}
    for engine, variables in (("warm", automatic), ("cold", stack)):
        harness = SystemHarness(tmp_path, {**system.environment, **variables})
        name = f"{engine}_{mode}_{format}"
        more = ", keys: [id]" if mode == "merge" else ""
        results_of_engine = []
        for number, columns in enumerate((_FIRST, _SECOND)):
            path = _file(tmp_path / f"{engine}-{number}.{format}", columns, format)
            text = _LOAD.format(name=name, path=path, format=format, mode=mode, more=more)
            results_of_engine.append(_run(harness, text))
        rows = Counter(str(sorted(row.items())) for row in lake.rows(f"t.{name}"))
        verdicts = [
            [(each["check"], each["verdict"], each["observed"]) for each in one["checks"]] for one in results_of_engine
        ]
        changes = [[(each["operation"], each["added_rows"], each["deleted_rows"]) for each in one["tables"].values()]
                   for one in results_of_engine]  # fmt: skip
        results[engine] = (rows, verdicts, changes, [[*one["bad_rows"].values()] for one in results_of_engine])
    assert results["warm"] == results["cold"]
    assert results["warm"][0].total() >= 2  # `overwrite` leaves the two good rows of the second file


def _file(path: Path, columns: dict[str, Any], format: str) -> Path:
    frame = pd.DataFrame(columns)
    if format == "csv":
        frame.to_csv(path, index=False)
    elif format == "json":
        frame.to_json(path, orient="records", lines=True)
    elif format == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_orc(path)
    return path
