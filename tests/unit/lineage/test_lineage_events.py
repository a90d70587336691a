"""OpenLineage events: their content, their names, and their validity."""

import copy
import json
import uuid
from collections import defaultdict
from typing import Any
from unittest.mock import MagicMock

import pytest

from devstack.stack import ROOT
from sluice import VERSION
from sluice.approval.waivers import WaivedCheck
from sluice.contracts.lineage import LineageEventType
from sluice.contracts.references import LineageParent
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.table_changes import TableChange
from sluice.errors import BadEnvironment
from sluice.lineage.datasets import DatasetName, dataset_name, source_dataset
from sluice.lineage.description import closing_event, describe_event
from sluice.lineage.identity import lineage_run_id, parse_parent
from sluice.pipeline.model import Pipeline
from sluice.settings import read_settings
from tests.harness.lineage import LineageReceiver, problems
from tests.harness.lineage_events import AT, CHECKS, PIPELINE, RUN, RUN_ID, Lake, sent
from workflows.metrics import count_run


def test_a_published_run(receiver: LineageReceiver, lake: Lake) -> None:
    parent = LineageParent(namespace="airflow", name="dag.task", run_id=str(uuid.uuid4()))
    published = lake.input(
        "COMPLETE", {"lineage_parent": parent}, outcome="published", checks=CHECKS[:2], main_after="h2"
    )
    event = sent(receiver, lake, published)
    assert (event["eventType"], event["eventTime"], event["run"]["runId"]) == ("COMPLETE", AT, RUN_ID)
    assert (event["job"]["namespace"], event["job"]["name"]) == ("sluice", "p")
    assert event["job"]["facets"]["documentation"]["description"] == "Loads permits"
    assert event["job"]["facets"]["sql"]["query"].startswith("SELECT s.*")
    run = event["run"]["facets"]
    assert run["parent"]["run"]["runId"] == parent.run_id and run["parent"]["job"]["name"] == "dag.task"
    assert run["nominalTime"]["nominalStartTime"] == AT
    assert run["processing_engine"]["version"] == VERSION
    tags = {each["key"]: each["value"] for each in run["tags"]["tags"]}
    assert tags.items() >= {("sluice_outcome", "published"), ("sluice_workflow_id", "p-123")}
    assert "errorMessage" not in run
    files, other = event["inputs"]
    assert (files["namespace"], files["name"]) == ("file", "/data/in")
    assert {key: files["inputFacets"]["inputStatistics"][key] for key in ("size", "fileCount")} == {
        "size": 120,
        "fileCount": 3,
    }
    assert other["facets"]["symlinks"]["identifiers"][0]["name"] == "t.other"
    (table,) = event["outputs"]
    assert table["namespace"] == "file" and lake.version.metadata_location.startswith(f"file://{table['name']}/")
    assert table["facets"]["version"]["datasetVersion"] == str(lake.version.snapshot_id)
    assert [each["name"] for each in table["facets"]["schema"]["fields"]] == ["id"]
    statistics = table["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (2, 900, 1)
    assertions = {each["name"]: each for each in table["facets"]["dataQualityAssertions"]["assertions"]}
    assert {name: (each["success"], each["severity"]) for name, each in assertions.items()} == {
        "not_null(id)": (True, "error"),
        "row_count": (False, "warn"),
    }
    assert assertions["not_null(id)"]["column"] == "id" and assertions["row_count"]["actual"] == "2"


def test_a_run_that_publishes_to_a_branch_of_a_backfill_has_no_outputs(receiver: LineageReceiver, lake: Lake) -> None:
    """Main may never have its rows. The run that publishes all partitions reports the rows of main."""
    partition = lake.input("COMPLETE", {"target": "wap/backfill"}, outcome="published", checks=CHECKS[:1])
    event = sent(receiver, lake, partition)
    assert (event["eventType"], event["outputs"]) == ("COMPLETE", [])
    assert [each["status"] for each in event["run"]["facets"]["test"]["tests"]] == ["pass"]


@pytest.mark.parametrize(("target", "rows"), [("", [2]), ("wap/backfill", [])])
def test_rows_are_counted_when_main_gets_them(monkeypatch: pytest.MonkeyPatch, target: str, rows: list[int]) -> None:
    meter = MagicMock()
    meter.with_additional_attributes.return_value = meter
    counters: dict[str, MagicMock] = defaultdict(MagicMock)
    meter.create_counter.side_effect = lambda name, _: counters[name]
    monkeypatch.setattr("workflows.metrics.workflow.metric_meter", lambda: meter)
    change = TableChange(operation="append", added_rows=2)
    count_run(
        RunResult(run_id=RUN_ID, workflow_id="w", pipeline="p", outcome="published", tables={"t.x": change}), target
    )
    assert counters["sluice_runs"].add.call_count == 1
    assert [each.args[0] for each in counters["sluice_rows_published"].add.call_args_list] == rows


def test_a_run_that_was_kept_out_has_verdicts_and_no_outputs(receiver: LineageReceiver, lake: Lake) -> None:
    waived = WaivedCheck(
        table="t.x",
        index=2,
        check="max_in_range(id)",
        fingerprint="f",
        by=["ana"],
        reason="r",
        until="2026-02-28",
        run_id="r",
    )
    kept_out = lake.input(
        "ABORT", outcome="quarantined", cause="audit", reason="it failed", checks=CHECKS, waived=[waived]
    )
    event = sent(receiver, lake, kept_out)
    assert (event["eventType"], event["outputs"]) == ("ABORT", [])
    tests = {each["name"]: each for each in event["run"]["facets"]["test"]["tests"]}
    assert [(each["status"], each["severity"]) for each in tests.values()] == [
        ("fail", "warn"), ("fail", "error"), ("fail", "error"), ("pass", "error"),
    ]  # fmt: skip  # what failed comes first
    values = tests["t.x: max_in_range(id)"]
    assert "actual" not in values, "what it observes is a value of rows"
    assert (values["params"]["failed_rows"], values["params"]["waived_until"]) == (1, "2026-02-28")
    assert tests["t.x: unique_combination_of_columns(id, day)"]["params"]["not_answered"] == "no memory"
    assert "98765" not in json.dumps(event)


def test_secrets_in_a_pipeline_are_hidden(receiver: LineageReceiver, lake: Lake) -> None:
    token = "ghp_" + "a1B2" * 9
    statement = f"DELETE FROM t.x WHERE note = '{token}'"
    input = lake.input("START").model_copy(update={"description": f"by {token}", "sql": [statement]})
    event = sent(receiver, lake, input)
    assert token not in json.dumps(event)
    assert event["job"]["facets"]["sql"]["query"].startswith("DELETE FROM t.x")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t.x SELECT * FROM nessie.t.other",
        "MERGE INTO t.x USING t.other o ON o.id = t.x.id WHEN MATCHED THEN DELETE",
        "DELETE FROM t.x WHERE id IN (SELECT id FROM t.other)",
    ],
)
def test_tables_that_statements_read_are_inputs(receiver: LineageReceiver, lake: Lake, statement: str) -> None:
    input = lake.input("RUNNING").model_copy(update={"sql": [statement], "read_tables": [], "sources": []})
    (read,) = sent(receiver, lake, input)["inputs"]
    assert read["facets"]["symlinks"]["identifiers"][0]["name"] == "t.other"
    assert read["facets"]["version"]["datasetVersion"]


def test_a_failed_run_says_why(receiver: LineageReceiver, lake: Lake) -> None:
    event = sent(receiver, lake, lake.input("FAIL", outcome="failed", cause="error", reason="the job failed"))
    assert event["run"]["facets"]["errorMessage"]["message"] == "the job failed"
    assert (event["eventType"], event["outputs"]) == ("FAIL", [])


@pytest.mark.parametrize("event", ["START", "RUNNING"])
def test_events_before_the_end(receiver: LineageReceiver, lake: Lake, event: LineageEventType) -> None:
    seen = sent(receiver, lake, lake.input(event))
    assert (seen["eventType"], seen["outputs"]) == (event, []) and "test" not in seen["run"]["facets"]


@pytest.mark.parametrize(
    ("outcome", "cause", "event"),
    [
        ("published", None, "COMPLETE"),
        ("quarantined", "audit", "ABORT"),
        ("discarded", "rejected", "ABORT"),
        ("discarded", "expired", "ABORT"),
        ("skipped", "nothing_to_do", "COMPLETE"),
        ("cancelled", "cancelled", "ABORT"),
        ("failed", "unreachable", "FAIL"),
        ("skipped", "already_published", "COMPLETE"),
    ],
)
def test_the_event_that_ends_a_run(outcome: Any, cause: Any, event: str) -> None:
    result = RunResult(run_id="r", workflow_id="w", pipeline="p", outcome=outcome, cause=cause)
    assert closing_event(result) == event


def test_a_repeated_event_is_the_same(receiver: LineageReceiver, lake: Lake) -> None:
    for _ in range(2):
        sent(receiver, lake, lake.input("COMPLETE", outcome="published", checks=CHECKS))
    first, second = receiver.bodies
    assert first == second


def test_the_validation_notices_what_is_wrong(receiver: LineageReceiver, lake: Lake) -> None:
    event = sent(receiver, lake, lake.input("COMPLETE", outcome="published", checks=CHECKS))
    for path, value in {
        ("eventTime",): "yesterday",
        ("run", "runId"): "p-123",
        ("eventType",): "DONE",
        ("job", "name"): None,
        ("schemaURL",): "https://openlineage.io/spec/9-9-9/OpenLineage.json",
        ("run", "facets", "test", "tests"): [{"status": "pass"}],
        ("run", "facets", "test", "_schemaURL"): "https://openlineage.io/spec/facets/9-9-9/TestRunFacet.json",
        ("run", "facets", "tests"): event["run"]["facets"]["test"],
    }.items():
        wrong = copy.deepcopy(event)
        holder = wrong
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
        assert problems(wrong), path


def test_an_event_of_very_many_checks_is_bounded_and_keeps_what_failed(lake: Lake) -> None:
    passed = [CHECKS[0].model_copy(update={"expected": "x" * 3_000}) for _ in range(5_000)]
    input = lake.input("ABORT", outcome="quarantined", checks=[*passed, CHECKS[2]])
    assert len(input.model_dump_json()) < 256 * 1024
    assert input.checks[0].kind == "max_in_range" and input.tags["sluice_checks"] == "5001"


def test_values_are_shown_where_the_pipeline_says_so(lake: Lake) -> None:
    pipeline = Pipeline.model_validate({**PIPELINE, "show_values": True})
    input = lake.input("ABORT", outcome="quarantined", checks=CHECKS)
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="ana")
    result = RunResult(run_id="r", workflow_id="w", pipeline="p", outcome="quarantined", checks=CHECKS)
    shown = describe_event("ABORT", AT, request, RUN, result)
    assert [each.observed for each in input.checks if each.kind == "max_in_range"] == [""]
    assert [each.observed for each in shown.checks if each.kind == "max_in_range"] == ["98765"]


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("/data/in.csv", "file", "/data/in.csv"),
        ("file:/lake/t/x", "file", "/lake/t/x"),
        ("file:///lake/t%20x/", "file", "/lake/t x"),
        ("s3://bucket/lake/t/x", "s3://bucket", "lake/t/x"),
        ("s3a://bucket/lake", "s3://bucket", "lake"),
        ("s3://bucket", "s3://bucket", "/"),
        ("s3://AKIA:secret@bucket/lake?X-Amz-Signature=1#f", "s3://bucket", "lake"),
        ("gs://bucket/lake", "gs://bucket", "lake"),
        ("hdfs://name:8020/lake", "hdfs://name:8020", "/lake"),
        ("abfss://box@store.dfs.core.windows.net/lake", "abfss://box@store.dfs.core.windows.net", "/lake"),
    ],
)
def test_datasets_are_named_by_their_location(location: str, namespace: str, name: str) -> None:
    assert dataset_name(location) == DatasetName(namespace, name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/in/*.csv", "/data/in"),
        ("/data/year=*/day=1/a.csv", "/data"),
        ("/data/in/part-[0-9].csv", "/data/in"),
        ("/*.csv", "/"),
        ("/data/in/a.csv", "/data/in/a.csv"),
        ("s3://bucket/in/*.csv", "in"),
    ],
)
def test_a_pattern_is_named_by_its_folder(path: str, name: str) -> None:
    assert source_dataset(path).name == name


def test_the_run_id_is_temporals_or_derived_from_it() -> None:
    assert lineage_run_id(RUN_ID) == RUN_ID
    assert lineage_run_id("other") == lineage_run_id("other") != lineage_run_id("another")
    assert uuid.UUID(lineage_run_id("other")).version == 5


def test_the_parent_of_a_run() -> None:
    run = str(uuid.uuid4())
    assert parse_parent("") is None
    assert parse_parent(f"a/b/dag.task/{run}") == LineageParent(namespace="a/b", name="dag.task", run_id=run)
    for wrong in ("dag.task", f"dag.task/{run}", "airflow/dag.task/1", f"/dag/{run}", f"a//{run}", "x" * 2_000):
        with pytest.raises(BadEnvironment, match="NAMESPACE/JOB/RUN_ID"):
            read_settings({"OPENLINEAGE_PARENT_ID": wrong})


@pytest.mark.parametrize("url", ["127.0.0.1:5000", "ftp://a", "http://a b"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(BadEnvironment, match="OPENLINEAGE_URL"):
        read_settings({"OPENLINEAGE_URL": url})


def test_the_version_is_that_of_the_project() -> None:
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()
