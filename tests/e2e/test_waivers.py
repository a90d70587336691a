"""A failed check that a person waives: published, and named in every report while the waiver is in force."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

CHECKS = "[unique: {column: id, waivable: true}, row_count: 1]"


def test_a_waived_check_is_published_and_named_everywhere(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    today = datetime.now(timezone.utc).date()
    until = str(today + timedelta(days=20))
    first = csv_file(tmp_path / "first.csv", [{"id": 1}, {"id": 1}])
    run = system.start(pipeline("waived", first, CHECKS))
    waiting = system.wait_for_stage(run, "waiting for approval")
    assert [each["check"] for each in waiting["approval"]["to_waive"]] == ["unique(id)"]
    named = ("--hash", f"{waiting['audited_hash'][:12]}:{waiting['audit_digest'][:12]}")
    shown = system.command("status", run).out
    assert "unique(id) of t.waived failed" in shown and f"approve {run} --waive 'unique(id)' --reason" in shown
    assert "waits for a waiver" in system.command("list").out

    waive = ("--waive", "unique(id)", "--by", "ana", *named)
    _assert_incomplete_waivers_are_refused(system, run, named, until)
    output = system.command("approve", run, *waive, "--reason", "late feed | *bold*", "--until", until)
    assert output.code == 0 and f"waives unique(id) of t.waived until {until} 23:59 UTC" in output.out, output
    ended = system.wait_for_end(run)
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended.json
    assert [each["id"] for each in lake.rows("t.waived")] == [1, 1]

    second = csv_file(tmp_path / "second.csv", [{"id": 2}, {"id": 2}])
    later = system.run(pipeline("waived", second, CHECKS))
    assert (later.code, later.json["outcome"]) == (0, "published"), later.json
    assert later.json["approval"] is None, "nobody is asked while the waiver holds"
    for result in (ended.json, later.json):
        (waived,) = result["waived"]
        assert (waived["by"], waived["run_id"]) == (["ana"], ended.json["run_id"])
        assert {each["check"]: each["verdict"] for each in result["checks"]} == {"unique": "fail", "row_count": "pass"}
        properties = lake.commit(result["main_after"])["allProperties"]
        (listed,) = json.loads(properties["sluice.waived-checks"][0])
        assert (listed["check"], listed["table"], listed["by"]) == ("unique(id)", "t.waived", ["ana"])
        assert listed["reason"] == "late feed | *bold*" and properties["sluice.verdicts"] == ["1 pass, 1 fail (waived)"]
        report = system.command("status", result["run_id"]).out
        assert "fail WAIVED" in report and f"waived by ana until {until} 23:59 UTC: late feed | *bold*" in report
        markdown = system.command("status", result["run_id"], "--report", "md").out
        assert r"- **WAIVED** unique(id) of t.waived failed, waived by ana" in markdown and r"late feed \|" in markdown
        query = f"SELECT verdict, waived_by, waiver_reason FROM results WHERE run_id = '{result['run_id']}' ORDER BY 1"
        rows = system.command("results", query, "--json").json["rows"]
        assert [row["waived_by"] for row in rows] == ["ana", None]

    changed = "[unique: {column: id, waivable: true, scope: table}, row_count: 1]"
    third = csv_file(tmp_path / "third.csv", [{"id": 3}, {"id": 3}])
    run = system.start(pipeline("waived", third, changed, more="on_failure: discard"))
    system.wait_for_stage(run, "waiting for approval")  # the check that applies now was not waived
    assert system.command("reject", run, "--reason", "no", "--hash", system.status(run)["audited_hash"]).code == 0
    assert system.wait_for_end(run).code == 4
    plain = CHECKS.replace(", waivable: true", "")
    ended = system.run(pipeline("waived", third, plain, more="on_failure: discard"))
    assert (ended.code, ended.json["cause"]) == (3, "audit"), "what may not be waived any more"


def _assert_incomplete_waivers_are_refused(system: SystemHarness, run: str, named: tuple[str, ...], until: str) -> None:
    waive = ("--waive", "unique(id)", "--by", "ana", *named)
    too_late = str(datetime.now(timezone.utc).date() + timedelta(days=200))
    for arguments, why in (
        (("--by", "ana", *named), "the audit failed, and an approval has to waive unique(id) of t.waived"),
        (waive, "a waiver needs a reason"),
        ((*waive, "--reason", "late feed"), "a waiver needs an end"),
        ((*waive, "--reason", "late feed", "--until", "2020-01-01"), "has to end in the future"),
        ((*waive, "--reason", "late feed", "--until", too_late), "at the latest"),
        ((*waive, "--reason", "token=ghp_0123456789abcdefghij", "--until", until), "looks like a secret"),
        (("--until", until, *named), "name the check by --waive"),
        (("--waive", "row_count", *named, "--reason", "r", "--until", until), "Checks to waive: unique(id)"),
    ):
        output = system.command("approve", run, *arguments)
        assert output.code == 2 and why in output.err, (arguments, output)
