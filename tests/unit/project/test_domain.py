"""The small rules of the domain."""

import pytest

from sluice.approval.decisions import AwaitedDecision, Decision, approval_outcome, is_same_person, refusal
from sluice.causes import Cause
from sluice.checks.verdicts import AuditReport, CheckResult, short_row, trim_samples
from sluice.contracts.run import Notification, Outcome, RunResult, RunStatus
from sluice.contracts.table_changes import TableChange
from sluice.durations import format_duration, seconds
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.identifiers import branch_name, literal, pipeline_name, quoted, quoted_table, table_name
from sluice.pipeline.environment import pipeline_from_environment
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import OnFailure, Pipeline
from sluice.presentation.web_ui import details
from sluice.publishing.exit_codes import exit_code
from sluice.publishing.outcomes import describe_blocking_checks, ending
from sluice.settings import read_settings
from tests.harness.slack import blocks, headline

HOSTILE = [
    *("", " ", "a b", "a'b", 'a"b', "a`b", "a;b", "..", "a..b", "../a", "a/../b", "a@main", "a#b", "a\nb", "a\\b"),
    *("é", "表", "-a", "x" * 300),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused(name: str) -> None:
    for refused in (pipeline_name, branch_name):
        with pytest.raises(InvalidPipeline):
            refused(name)
    for table in (name, f"t.{name}", f"{name}.t"):
        with pytest.raises(InvalidPipeline):
            table_name(table)


def test_plain_names_pass() -> None:
    assert pipeline_name("nyc-flights_2") and branch_name("team/nightly.1") and table_name("a.b_c.D1")


def test_identifiers_and_literals_are_quoted() -> None:
    assert quoted("a`b") == "`a``b`"
    assert quoted_table("n.t", "nessie") == "`nessie`.`n`.`t`"
    assert literal("it's \\ a\nline") == r"'it\'s \\ a\nline'"
    assert [literal(value) for value in (None, True, 3, 1.5, float("nan"))] == ["NULL", "TRUE", "3", "1.5", "'nan'"]


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("15m", 900), ("1.5h", 5400), ("14d", 1209600)])
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "0s", "-1h", "1w", "nan"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


def test_a_duration_that_a_person_states_has_a_unit_and_one_of_a_message_is_seconds() -> None:
    text = "name: p\nwrite: {source: {path: a.csv}}\ntables: [t.x]\nkeep: 14"
    with pytest.raises(ValueError, match="14 has no unit: write 14s, 14m, 14h or 14d"):
        seconds("14")
    with pytest.raises(InvalidPipeline, match=r"p\.yml:4: keep: 14 has no unit"):
        parse_pipeline(text, "p.yml", {})
    pipeline = parse_pipeline(f"{text}d", "p.yml", {})
    assert Pipeline.model_validate_json(pipeline.model_dump_json(by_alias=True)).keep == 14 * 86400


def test_durations_are_formatted() -> None:
    assert [format_duration(value) for value in (86400, 7200, 90, 2.5)] == ["1d", "2h", "90s", "2.5s"]


def decision(by: str, approve: bool | None = True, audited_hash: str = "") -> Decision:
    return Decision(approve=approve, by=by, audited_hash=audited_hash, at="noon")


@pytest.mark.parametrize(
    ("new", "waiting", "earlier", "why"),
    [
        (decision(by="ana"), "h", [], None),
        (decision(by="ana", audited_hash="h"), "h", [], None),
        (decision(by="  "), "h", [], "needs the name"),
        (decision(by="ana", approve=None), "h", [], "needs `approve`"),
        (decision(by="ana"), None, [], "is not waiting for approval: it is writing"),
        (decision(by="ana", audited_hash="old"), "h", [], "look again"),
        (decision(by="ana"), "h", [decision("ana")], "ana decided already"),
        (decision(by="ben"), "h", [decision("ana")], None),
        (decision(by="cleo"), "h", [decision("ana"), decision("ben")], "approved by ben at noon already"),
        (decision(by="cleo"), "h", [decision("ana", False)], "rejected by ana at noon already"),
    ],
)
def test_which_decisions_count(new: Decision, waiting: str | None, earlier: list[Decision], why: str | None) -> None:
    refused = refusal(new, AwaitedDecision(audited_hash=waiting, audit_digest="d", required=2), earlier, "writing")
    assert refused is None if why is None else refused is not None and why in refused


@pytest.mark.parametrize(
    ("new", "signed", "why"),
    [
        ({"audited_hash": "h", "audit_digest": "d"}, True, None),
        ({"audited_hash": "h", "audit_digest": "earlier"}, True, "the audit report changed since it was shown"),
        ({"audit_digest": "earlier"}, False, "the audit report changed since it was shown"),
        ({"audited_hash": "h"}, True, "names the hash and the report and signs them"),
        ({}, True, "names the hash and the report and signs them"),
        ({}, False, None),
        ({"by": "x" * 201}, False, "has 201 characters"),
        ({"by": "\u200b@host"}, False, "needs the name"),
    ],
)
def test_a_decision_is_about_the_report_that_waits(new: dict[str, str], signed: bool, why: str | None) -> None:
    awaited = AwaitedDecision(audited_hash="h", audit_digest="d", signed=signed)
    refused = refusal(Decision.model_validate({"approve": True, "by": "ana", **new}), awaited, [], "waiting")
    assert refused is None if why is None else refused is not None and why in refused


@pytest.mark.parametrize(
    "spelling", ["ana", " ANA ", "Ana@laptop", "\uff41na", "a\u200bna", "ana\u00a0", "\u2060ana", "ana\t"]
)
def test_the_starter_is_one_person_in_every_spelling(spelling: str) -> None:
    assert is_same_person(spelling, "ana")
    awaited = AwaitedDecision(audited_hash="h", starter="ana@desk")
    refused = refusal(decision(spelling), awaited, [], "waiting")
    assert refused and "four eyes" in refused
    assert refusal(decision("anna"), awaited, [], "waiting") is None


def test_when_an_approval_has_an_outcome() -> None:
    assert approval_outcome(2, [decision("ana")]) is None
    assert approval_outcome(2, [decision("ana"), decision("ben")]) is True
    assert approval_outcome(2, [decision("ana"), decision("ben", False)]) is False


@pytest.mark.parametrize(
    ("cause", "on_failure", "outcome", "kept"),
    [
        ("audit", "quarantine", "quarantined", True),
        ("audit", "discard", "discarded", False),
        ("rejected", "discard", "discarded", False),
        ("expired", "quarantine", "quarantined", True),
        ("cancelled", "quarantine", "cancelled", False),
        ("invalid", "quarantine", "failed", False),
        ("error", "discard", "failed", True),
        ("checked", "quarantine", "checked", False),
    ],
)
def test_endings(cause: Cause, on_failure: OnFailure, outcome: Outcome, kept: bool) -> None:
    end = ending(cause, on_failure)
    assert (end.outcome, end.keep_branch) == (outcome, kept)
    kept_already = ending(cause, on_failure, may_keep=False)
    assert (kept_already.outcome, kept_already.cause, kept_already.keep_branch) == (outcome, cause, False)
    assert end.final_outcome(is_kept=True) == outcome
    assert end.final_outcome(is_kept=False) == ("discarded" if outcome == "quarantined" else outcome)


def result(outcome: Outcome | None, cause: Cause | None = None, **more: object) -> RunResult:
    return RunResult.model_validate(
        {"run_id": "r", "workflow_id": "w", "pipeline": "p", "outcome": outcome, "cause": cause, **more}
    )


@pytest.mark.parametrize(
    ("outcome", "cause", "code"),
    [
        ("published", None, 0),
        ("checked", "checked", 0),
        ("quarantined", "audit", 3),
        ("discarded", "audit", 3),
        ("quarantined", "rejected", 4),
        ("discarded", "expired", 4),
        ("cancelled", "cancelled", 5),
        ("failed", "error", 6),
        ("failed", "invalid", 6),
        ("skipped", "already_published", 0),
        ("failed", "unreachable", 7),
        (None, None, 6),
    ],
)
def test_exit_codes(outcome: Outcome | None, cause: Cause | None, code: int) -> None:
    assert exit_code(result(outcome, cause)) == code


def check(**fields: object) -> CheckResult:
    stated = {"table": "t.x", "check": "not_null", "columns": ["a"], "verdict": "fail", "expected": "no nulls"}
    return CheckResult.model_validate({**stated, **fields})


def test_no_evidence_blocks_whatever_the_severity() -> None:
    report = AuditReport(branch="b", audited_hash="h", checks=[check(verdict="error")])
    assert not report.passed
    assert AuditReport(branch="b", audited_hash="h", checks=[check(verdict="warn")]).passed


def test_a_report_is_thinned_but_keeps_every_verdict() -> None:
    sample = [{"text": "x" * 100} for _ in range(5)]
    checks = [check(sample=sample) for _ in range(100)]
    thin = trim_samples(checks, limit=40_000)
    assert sum(len(each.model_dump_json()) for each in thin) <= 40_000 and len(thin) == 100
    assert trim_samples(checks, limit=10**6) == checks
    assert len(str(short_row({"a": "x" * 5000})["a"])) < 200


def test_what_stopped_a_run_is_named() -> None:
    checks = [check(observed=3), *(check(verdict="error", message="no answer") for _ in range(6))]
    assert describe_blocking_checks(checks).startswith(
        "the audit failed with 1 fail, 6 error: not_null(a) of t.x: observed 3, expected no nulls"
    )
    assert describe_blocking_checks(checks).endswith("and 2 more")


def test_the_web_ui_shows_what_blocks_first() -> None:
    checks = [check(verdict="pass", observed="a|b")] * 40 + [check(observed=3)]
    tables = {"t.x": TableChange(operation="append", added_rows=1234)}
    shown = details(
        RunStatus(stage="ended", events=[], result=result("quarantined", reason="x", checks=checks, tables=tables))
    )
    rows = [line for line in shown.splitlines() if "not_null" in line]
    assert rows[0].startswith("| **fail** |") and "a\\|b" in rows[1]
    assert "1,234" in shown and "and 11 more" in shown


def test_slack_messages() -> None:
    ended = Notification(result=result("quarantined", reason="a < b", branch="quarantine/p/d/r"))
    assert headline(ended) == ":no_entry: p: quarantined"
    section = blocks(ended, "http://ui/w")[1]["text"]["text"]
    assert "a &lt; b" in section and "`quarantine/p/d/r`" in section and "<http://ui/w|w>" in section
    waiting = Notification(result=result(None), waiting_until="noon")
    assert "approve w" in blocks(waiting, "u")[1]["text"]["text"] and "waits" in headline(waiting)


LEGACY = {"TABLE_NAME": "cities", "NAMESPACE": "geo", "BRANCH_NAME": "nightly", "S3_PATH": "s3://b/in/*.parquet"}


def test_the_pipeline_of_the_environment() -> None:
    pipeline = pipeline_from_environment({**LEGACY, "NOT_NULL_COLUMNS": " id ,name,"})
    assert (pipeline.name, pipeline.label) == ("geo-cities", "nightly")
    assert [check.column_names for check in pipeline.tables["geo.cities"].checks] == [["id"], ["name"]]
    assert pipeline.approval is None and pipeline.write.mode == "append"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"TABLE_NAME": ""}, "TABLE_NAME is not set"),
        ({"TABLE_NAME": "a b"}, "NAMESPACE and TABLE_NAME: 'geo.a b' is not a table name"),
        ({"BRANCH_NAME": "a..b"}, "BRANCH_NAME: 'a..b' is not a branch name"),
        ({"S3_PATH": "s3://b/in"}, "cannot be told from its name"),
        (
            {"S3_PATH": "s3://b/in/a.AVRO"},
            "Sluice does not read Avro: convert the files to Parquet, or",
        ),
    ],
)
def test_an_environment_that_is_wrong(changed: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        pipeline_from_environment({**LEGACY, **changed})
    assert message in str(raised.value)


def test_settings() -> None:
    settings = read_settings({"NESSIE_URI": "https://n/api/v2/", "WAREHOUSE": "s3://lake/x", "SLACK_TOKEN": "xoxb-1"})
    assert (settings.catalog.nessie_uri, settings.storage.lake) == ("https://n/api/v2", "s3://lake/x")
    assert "xoxb" not in repr(settings)
    assert read_settings({"SLUICE_HOME": "/h"}).storage.lake == "file:///h/lake"
    for wrong in ({"NESSIE_URI": "http://n/api/v1"}, {"CATALOG_NAME": "a b"}, {"SLUICE_OPEN_TIMEOUT": "soon"}):
        with pytest.raises(BadEnvironment, match=next(iter(wrong))):
            read_settings(wrong)


@pytest.mark.parametrize(
    ("former", "present"), [("CATALOGUE", "CATALOG"), ("ICEBERG_TYPE", "CATALOG"), ("SLUICE_CATALOG", "CATALOG_NAME")]
)
def test_a_setting_with_a_former_name_is_refused_with_the_present_one(former: str, present: str) -> None:
    with pytest.raises(BadEnvironment, match=f"^{former} is now {present}: rename it"):
        read_settings({former: "nessie"})
    assert read_settings({former: ""}).catalog.catalog == "nessie"


@pytest.mark.parametrize(
    ("given", "name"), [({}, "nessie"), ({"CATALOG": "glue"}, "iceberg"), ({"CATALOG_NAME": "lake"}, "lake")]
)
def test_the_name_of_the_catalog_in_spark(given: dict[str, str], name: str) -> None:
    assert read_settings(given).catalog.catalog_name == name
