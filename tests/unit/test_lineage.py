"""OpenLineage events: their content, their validity, and the possible effects of a receiver on the sender."""

import copy
import json
import os
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from temporalio.exceptions import ApplicationError

from activities.lineage.emit_lineage import EmitLineageActivity
from activities.lineage.lineage_client import is_configured
from devstack.stack import ROOT
from lakehouse.open_catalog import catalog_address
from sluice import VERSION
from sluice.approval.waivers import WaivedCheck
from sluice.checks.verdicts import CheckResult
from sluice.contracts.examination import Finding
from sluice.contracts.input import ManifestRef, SelectedInput
from sluice.contracts.lineage import EmitLineageInput, LineageEventType
from sluice.contracts.references import BranchRef, LineageParent, RunRef
from sluice.contracts.run import RunInput, RunRequest, RunResult
from sluice.contracts.write import ChangedTable, TableChange, TableVersionRef, WriteResult
from sluice.errors import BadEnvironment, ServiceUnavailable
from sluice.lineage.datasets import DatasetName, dataset_name, source_dataset
from sluice.lineage.description import closing_event, describe_event
from sluice.lineage.identity import lineage_run_id, parse_parent
from sluice.pipeline.model import Pipeline
from sluice.setting_groups import LineageSettings
from sluice.settings import Settings, read_settings
from tests.harness.activity import run_activity
from tests.harness.examination import examined
from tests.harness.lineage import LineageReceiver, lineage_receiver, problems
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from workflows.metrics import count_run

RUN_ID = "01a206c9-4d1d-779e-bab1-11165e9ad64e"
RUN = RunRef(run_id=RUN_ID, workflow_id="p-123", pipeline="p", label="p", attempt=1)
AT = "2026-01-31T12:00:00+00:00"
KEY = "lineage-key-5up3r"
PIPELINE: dict[str, Any] = {
    "name": "p",
    "description": "Loads permits",
    "write": {
        "source": {"path": "/data/in/*.csv"},
        "transform": "SELECT s.* FROM source s JOIN t.other o ON o.id = s.id",
    },
    "tables": {
        "t.x": {
            "checks": [
                {"check": "not_null", "column": "id"},
                {"check": "row_count", "min": 9, "severity": "warn"},
                {"check": "max_in_range", "column": "id", "max": 5},
                {"check": "unique_combination_of_columns", "columns": ["id", "day"]},
            ]
        }
    },
}
CHECKS = [
    CheckResult(table="t.x", index=0, check="not_null", columns=["id"], verdict="pass", observed=0, expected="no null"),
    CheckResult(table="t.x", index=1, check="row_count", columns=[], verdict="warn", observed=2, expected="at least 9"),
    CheckResult(
        table="t.x", index=2, check="max_in_range", columns=["id"], verdict="fail", observed=98765, failed_rows=1
    ),
    CheckResult(
        table="t.x",
        index=3,
        check="unique_combination_of_columns",
        columns=["id", "day"],
        verdict="error",
        message="no memory",
    ),
]


class Lake:
    """A lake with a table that a run published, and a table that it read."""

    def __init__(self, folder: Path) -> None:
        self.catalog = MemoryCatalog()
        lake = MemoryLake(self.catalog, folder)
        self.catalog.initialize_main()
        lake.append("main", "t.other", [1], RUN)
        base = self.catalog.head("main")
        self.branch = BranchRef(name=RUN.branch, base=base, catalog_id=self.catalog.identity())
        lake.append("main", "t.x", [1, 2], RUN)
        version = self.catalog.table_version("main", "t.x")
        assert version
        self.version = version
        self.written = WriteResult(
            head="h",
            tables={"t.x": TableChange(operation="append", added_rows=2, added_bytes=900, added_files=1)},
            versions={"t.x": ChangedTable(after=TableVersionRef(**vars(version)))},
        )

    def input(self, event: LineageEventType, request: dict[str, Any] | None = None, **result: Any) -> EmitLineageInput:
        """Return an event as the workflow describes it."""
        loaded = SelectedInput(manifest=ManifestRef(location="m", digest="d"), files=3, bytes=120)
        known = {"input": loaded, "attempts": 1, **result}
        return describe_event(
            event,
            AT,
            RunRequest(
                pipeline=Pipeline.model_validate(PIPELINE), input=RunInput(digest="d"), starter="ana", **(request or {})
            ),
            RUN,
            RunResult(run_id=RUN_ID, workflow_id="p-123", pipeline="p", **known),
            scheduled_at=AT,
            read_tables=["t.x", "t.missing", "nessie.t.other"],
            branch=self.branch,
            written=self.written,
        )

    def sender(self, **settings: Any) -> EmitLineageActivity:
        given = Settings.of(**settings)
        name, address = given.catalog.catalog_name, catalog_address(given)
        return EmitLineageActivity(given.lineage, self.catalog, {}, name, address)


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run each test in a folder and a home without configuration; undo the client's changes of variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def receiver() -> Iterator[LineageReceiver]:
    with lineage_receiver() as server:
        yield server


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def sent(receiver: LineageReceiver, lake: Lake, input: EmitLineageInput) -> dict[str, Any]:
    run_activity(lake.sender(openlineage_url=receiver.url).emit_lineage, input)
    event = receiver.events[-1]
    assert problems(event) == []
    return event


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


class AwayCatalog(MemoryCatalog):
    """A catalog that does not answer."""

    def check_identity(self, expected: str) -> None:
        raise ServiceUnavailable("it does not answer")


def test_an_event_is_sent_without_what_cannot_be_read_now(receiver: LineageReceiver, lake: Lake) -> None:
    input = lake.input("COMPLETE", outcome="published")
    location = lake.version.metadata_location.rsplit("/", 2)[0]
    Path(lake.version.metadata_location.removeprefix("file://")).unlink()
    run_activity(
        EmitLineageActivity(
            LineageSettings(openlineage_url=receiver.url), AwayCatalog(), {}, "nessie", ""
        ).emit_lineage,
        input,
    )
    (event,) = receiver.events
    assert problems(event) == []
    assert [each["name"] for each in event["inputs"]] == ["/data/in"]
    assert [each["name"] for each in event["outputs"]] == [location.removeprefix("file://")]


@pytest.mark.parametrize(("status", "is_final"), [(500, False), (503, False), (429, False), (403, True), (422, True)])
def test_a_receiver_that_refuses(receiver: LineageReceiver, lake: Lake, status: int, is_final: bool) -> None:
    receiver.status = status
    with pytest.raises(ApplicationError) as raised:
        run_activity(
            lake.sender(openlineage_url=receiver.url, openlineage_api_key=KEY).emit_lineage, lake.input("START")
        )
    assert str(status) in raised.value.message and raised.value.non_retryable is is_final
    assert len(receiver.bodies) == 1, "Temporal tries again, not the client"
    assert receiver.keys == [f"Bearer {KEY}"] and KEY not in str(raised.value)


def test_a_receiver_that_never_answers(receiver: LineageReceiver, lake: Lake) -> None:
    receiver.hangs = True
    began = time.monotonic()
    with pytest.raises(ApplicationError) as raised:
        run_activity(lake.sender(openlineage_url=receiver.url).emit_lineage, lake.input("START"))
    assert time.monotonic() - began < 9 and not raised.value.non_retryable


def test_a_receiver_that_is_not_there(lake: Lake) -> None:
    url = "http://user:pa55word@127.0.0.1:1"
    with pytest.raises(ApplicationError) as raised:
        run_activity(lake.sender(openlineage_url=url).emit_lineage, lake.input("START"))
    assert not raised.value.non_retryable and "pa55word" not in str(raised.value)


def test_without_settings_nothing_is_sent(lake: Lake, receiver: LineageReceiver) -> None:
    off = lake.sender()
    assert not run_activity(off.can_emit_lineage, RUN)
    run_activity(off.emit_lineage, lake.input("START"))
    disabled = lake.sender(openlineage_url=receiver.url, openlineage_disabled=True)
    assert not run_activity(disabled.can_emit_lineage, RUN)
    run_activity(disabled.emit_lineage, lake.input("START"))
    assert receiver.bodies == []


def test_the_configuration_file_of_the_client(receiver: LineageReceiver, lake: Lake, tmp_path: Path) -> None:
    transport = f"{{type: http, url: '{receiver.url}', endpoint: other/path, auth: {{type: api_key, apiKey: {KEY}}}}}"
    (tmp_path / "openlineage.yml").write_text(f"transport: {transport}\n")
    assert is_configured(Settings().lineage)
    # The file takes precedence over the variable, as in the client.
    run_activity(lake.sender(openlineage_url="http://127.0.0.1:1").emit_lineage, lake.input("START"))
    assert receiver.keys == [f"Bearer {KEY}"]
    named = tmp_path / "home" / "named.yml"
    named.parent.mkdir()
    (tmp_path / "openlineage.yml").rename(named)
    assert not is_configured(Settings().lineage)
    run_activity(lake.sender(openlineage_config="~/named.yml").emit_lineage, lake.input("START"))
    assert len(receiver.bodies) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("transport: [", "cannot be read"),
        ("- a list", "is not a mapping"),
        ("facets: {}", "names no `transport.type`"),
        ("transport: {type: http}", "not valid"),
        ("transport: {type: sluice.no.such.Transport}", "not valid"),
    ],
)
def test_a_configuration_that_is_wrong(lake: Lake, tmp_path: Path, text: str | None, why: str) -> None:
    file = tmp_path / "named.yml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ApplicationError, match=why) as raised:
        run_activity(lake.sender(openlineage_config=str(file)).emit_lineage, lake.input("START"))
    assert raised.value.non_retryable
    finding = examined(tmp_path, openlineage_config=str(file))["OpenLineage"]
    assert finding.state == "failed" and why in finding.detail


@pytest.mark.parametrize(
    ("status", "state", "detail"),
    [
        (405, "ok", "answers; no event was sent"),
        (401, "failed", "refuses the key"),
        (503, "failed", "answers 503"),
        (404, "warning", "answers 404"),
    ],
)
def test_doctor_looks_at_the_receiver(
    tmp_path: Path, receiver: LineageReceiver, status: int, state: str, detail: str
) -> None:
    receiver.status = status
    finding = examined(tmp_path, openlineage_url=receiver.url, openlineage_api_key=KEY)["OpenLineage"]
    assert finding.state == state and detail in finding.detail and KEY not in finding.detail
    assert receiver.bodies == [] and receiver.keys == [f"Bearer {KEY}"]


def test_doctor_of_a_receiver_that_is_off_or_away(tmp_path: Path) -> None:
    states: list[Finding] = [
        examined(tmp_path, **settings)["OpenLineage"]
        for settings in (
            {},
            {"openlineage_url": "http://127.0.0.1:1", "openlineage_disabled": True},
            {"openlineage_url": "http://ana:pa55word@127.0.0.1:1"},
        )
    ]
    assert [each.state for each in states] == ["off", "off", "failed"]
    assert "does not answer" in states[2].detail and states[2].remedy and "pa55word" not in states[2].detail


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


def test_a_worker_without_events_does_not_import_the_client() -> None:
    shown = "import sys, worker; print([name for name in sys.modules if name.startswith('openlineage')])"
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_that_of_the_project() -> None:
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()
