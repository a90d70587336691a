"""The findings of `doctor` on the parts of an installation, each of them broken once."""

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from activities.installation.examine_installation import ExamineInstallationActivity
from activities.installation.examine_spark import ExamineSparkActivity
from activities.notifications.open_notifier import open_notifier
from cli.app import app
from cli.lazy_commands import COMMANDS
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.examination import ExamineInstallationInput, ExamineSparkInput
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.examination import examined
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.slack import Slack


class AwayCatalog(MemoryCatalog):
    """A catalog that does not answer."""

    def head(self, branch: str) -> str:
        raise ServiceUnavailable("the catalog does not answer")


def secret(folder: Path, name: str, text: str = "token", mode: int = 0o600) -> str:
    file = folder / name
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_an_installation_that_is_well(tmp_path: Path) -> None:
    tokens = {
        "nessie_publisher_token_file": secret(tmp_path, "publisher"),
        "nessie_writer_token_file": secret(tmp_path, "writer"),
    }
    catalog = MemoryCatalog()
    findings = examined(tmp_path, catalog, **tokens)
    assert {part: finding.state for part, finding in findings.items()} == {
        "catalog": "ok",
        "branches": "ok",
        "tokens": "ok",
        "lake": "ok",
        "approvals": "off",
        "encryption": "off",
        "Slack": "off",
        "routes": "off",
        "OpenLineage": "off",
        "targets": "off",
    }
    assert [each.name for each in catalog.list_branches()] == ["main"], "nothing is left behind"
    assert list((tmp_path / "lake").iterdir()) == []


def test_one_part_that_fails_hides_no_other(tmp_path: Path) -> None:
    findings = examined(tmp_path, AwayCatalog())
    assert (findings["catalog"].state, findings["branches"].state) == ("failed", "failed")
    assert findings["catalog"].detail == "the catalog does not answer"
    assert findings["lake"].state == "ok"


class OtherServer(MemoryCatalog):
    """A server at the address of the catalog that is not a catalog."""

    def head(self, branch: str) -> str:
        raise ValueError("Expecting value: line 1 column 1")


def test_another_server_at_the_address_of_the_catalog(tmp_path: Path) -> None:
    finding = examined(tmp_path, OtherServer())["catalog"]
    assert finding.state == "failed" and "does not answer as the catalog" in finding.detail
    assert "set the address of the catalog" in finding.remedy


def test_a_lake_in_which_the_catalog_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    catalog = open_iceberg("lake", "sql", f"sqlite:///{tmp_path}/c.db", (tmp_path / "home").as_uri(), {})
    catalog.initialize_main()
    catalog._branches.tables.catalog.properties["warehouse"] = (tmp_path / "lake").as_uri()
    findings = examined(tmp_path, catalog, catalog="sql")
    assert {part for part, finding in findings.items() if finding.state == "failed"} == {"transactions", "lake"}
    assert all("set WAREHOUSE to a location" in findings[part].remedy for part in ("transactions", "lake"))


@pytest.mark.parametrize(
    ("writer", "state", "detail"),
    [
        (None, "warning", "without tokens"),
        ("publisher", "warning", "the same token"),
        ("missing", "failed", "No such file"),
        ("empty", "failed", "is empty"),
        ("open", "warning", "can be read by other users"),
    ],
)
def test_tokens(tmp_path: Path, writer: str | None, state: str, detail: str) -> None:
    publisher = secret(tmp_path, "publisher")
    secret(tmp_path, "empty", "")
    secret(tmp_path, "open", mode=0o644)
    own = str(tmp_path / str(writer))
    files: dict[str, Any] = {"nessie_publisher_token_file": publisher, "nessie_writer_token_file": own}
    finding = examined(tmp_path, **(files if writer else {}))["tokens"]
    assert finding.state == state and detail in finding.detail and finding.remedy


def test_a_lake_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    finding = examined(tmp_path)["lake"]
    assert finding.state == "failed" and "cannot be written and read" in finding.detail
    assert "set WAREHOUSE" in finding.remedy


@pytest.mark.parametrize(
    ("settings", "state", "detail"),
    [
        ({"sluice_require_approval": "finance.*=2"}, "warning", "anybody may approve"),
        ({"sluice_approvers_file": "missing"}, "failed", "SLUICE_APPROVERS_FILE=missing"),
        ({"sluice_approvers_file": "empty"}, "failed", "no run can be approved"),
    ],
)
def test_approvals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], state: str, detail: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    finding = examined(tmp_path, **settings)["approvals"]
    assert finding.state == state and detail in finding.detail


def test_slack_that_is_half_set_up_or_away(tmp_path: Path) -> None:
    half = examined(tmp_path, slack_token="xoxb-1")["Slack"]
    assert (half.state, half.remedy) == ("failed", "set SLACK_CHANNEL, or remove SLACK_TOKEN")
    away: dict[str, Any] = {
        "slack_token": "xoxb-secret",
        "slack_channel": "#loads",
        "slack_api_url": "http://127.0.0.1:1/api/",
    }
    finding = examined(tmp_path, **away)["Slack"]
    assert finding.state == "failed" and "does not answer" in finding.detail and "secret" not in finding.detail


def test_routes_of_messages(tmp_path: Path) -> None:
    file = tmp_path / "routes.yml"
    file.write_text("- {to: 'json://127.0.0.1:1'}\n")
    finding = examined(tmp_path, sluice_notifications_file=str(file))["routes"]
    assert (finding.state, finding.detail) == ("ok", "messages go to json")
    file.write_text("- {to: 'nothing://x'}\n")
    finding = examined(tmp_path, sluice_notifications_file=str(file))["routes"]
    assert (finding.state, finding.detail) == ("failed", "Apprise does not support addresses of this form: nothing://…")


@pytest.mark.parametrize(
    ("now", "detail"),
    [
        ("- {to: 'xml://127.0.0.1:1'}", "/routes.yml changed"),
        ("- {to: 'json://127.0.0.1:1', severity: error}", "/routes.yml changed"),
        ("- {to: '${PAGER}'}", "the next worker cannot start: SLUICE_NOTIFICATIONS_FILE="),
    ],
)
def test_the_routes_that_the_worker_uses_decide(tmp_path: Path, now: str, detail: str) -> None:
    file = tmp_path / "routes.yml"
    file.write_text("- {to: 'json://127.0.0.1:1'}")
    settings = Settings.of(sluice_notifications_file=str(file), sluice_home=tmp_path, warehouse=tmp_path.as_uri())
    activity = ExamineInstallationActivity(
        settings, MemoryCatalog(), {}, open_notifier(settings.notifications), folder=tmp_path
    )
    file.write_text(now)
    findings = run_activity(activity.examine_installation, ExamineInstallationInput()).findings
    (finding,) = (each for each in findings if each.part == "routes")
    assert finding.state == "warning" and finding.remedy.endswith("restart this worker")
    assert detail in finding.detail
    assert finding.detail.endswith("; this worker uses the routes from its start: messages go to json")


def test_a_token_that_slack_refuses(tmp_path: Path) -> None:
    with Slack() as slack:
        slack.answer = {"ok": False, "error": "invalid_auth"}
        wrong: dict[str, Any] = {"slack_token": "xoxb-secret", "slack_channel": "#loads", "slack_api_url": slack.url}
        finding = examined(tmp_path, **wrong)["Slack"]
    assert (finding.state, finding.detail) == ("failed", "Slack refuses: invalid_auth")
    assert finding.remedy == "set SLACK_TOKEN to a bot token with chat:write"


@pytest.mark.parametrize("version", ["11.0.1", "25"])
def test_a_java_that_spark_does_not_run_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    (finding, *_) = run_activity(
        ExamineSparkActivity(Settings.of(sluice_home=tmp_path).spark_jobs).examine_spark, ExamineSparkInput()
    ).findings
    assert (finding.part, finding.state) == ("Java", "failed")
    assert f"is Java {version.split('.', maxsplit=1)[0]}: point JAVA_HOME at a suitable one" in finding.detail


def test_what_spark_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    activity = ExamineSparkActivity(Settings.of(sluice_home=tmp_path).spark_jobs).examine_spark
    findings = {each.part: each for each in run_activity(activity, ExamineSparkInput()).findings}
    assert "point JAVA_HOME at a suitable one" in findings["Java"].detail
    assert (findings["jars"].state, findings["jars"].remedy) == ("failed", "run `make setup`")
    assert findings["disk"].state in ("ok", "warning")


@pytest.mark.parametrize(("age", "expected"), [(3600, ""), (-60, "warning")])
def test_settings_that_changed_after_the_worker_started(tmp_path: Path, age: int, expected: str) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("SPARK_MASTER=local[1]\n")
    changed = psutil.Process().create_time() - age
    os.utime(dotenv, (changed, changed))
    settings = Settings.of(warehouse=(tmp_path / "lake").as_uri(), sluice_home=tmp_path)
    notifier = open_notifier(settings.notifications)
    activity = ExamineInstallationActivity(settings, MemoryCatalog(), {}, notifier, folder=tmp_path)
    findings = run_activity(activity.examine_installation, ExamineInstallationInput()).findings
    of_worker = [each for each in findings if each.part == "worker"]
    assert [each.state for each in of_worker] == ([expected] if expected else [])
    assert all(f"{dotenv} changed after this worker started" in each.detail for each in of_worker)


def test_without_temporal_the_rest_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("SLUICE_PAGE", "http://127.0.0.1:1")
    monkeypatch.setenv("SLUICE_PAGE_PORT", "1")
    monkeypatch.setenv("SLUICE_SCAN_MEMROY", "1GB")
    assert "doctor" in COMMANDS
    result = CliRunner().invoke(app, ["doctor", "--json"])
    fields = json.loads(result.stdout)
    assert result.exit_code == fields["exit_code"] == 7
    assert [(each["part"], each["state"]) for each in fields["findings"]] == [
        ("settings", "ok"),
        ("settings", "warning"),
        ("Temporal", "failed"),
        ("page", "warning"),
    ]
    detail = "SLUICE_SCAN_MEMROY is no setting (did you mean 'SLUICE_SCAN_MEMORY'?)"
    assert fields["findings"][1]["detail"] == detail
    monkeypatch.setenv("NESSIE_URI", "not an address")
    wrong = CliRunner().invoke(app, ["doctor"])
    assert wrong.exit_code == 2 and "NESSIE_URI" in wrong.output
