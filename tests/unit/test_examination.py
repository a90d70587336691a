"""What `doctor` says of the parts of an installation, each of them broken once."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from activities.examine_installation import ExamineInstallationActivity
from activities.examine_spark import ExamineSparkActivity
from cli.app import app
from cli.lazy_commands import LAZY_COMMANDS
from sluice.contracts.examination import ExamineInstallationInput, ExamineSparkInput, Finding
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings
from tests.harness.memory_catalog import MemoryCatalog
from tests.unit.test_branch_activities import call


class AwayCatalog(MemoryCatalog):
    """A catalog that does not answer."""

    def head(self, branch: str) -> str:
        raise ServiceUnavailable("the catalog does not answer")


def examined(folder: Path, catalog: MemoryCatalog | None = None, **settings: Any) -> dict[str, Finding]:
    """Return the findings of a worker by their parts; of several of one part, the last."""
    lake = {"warehouse": (folder / "lake").as_uri(), "sluice_home": folder, **settings}
    activity = ExamineInstallationActivity(Settings(**lake), catalog or MemoryCatalog(), {})
    findings = call(activity.examine_installation, ExamineInstallationInput()).findings
    return {finding.part: finding for finding in findings}


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


@pytest.mark.parametrize(
    ("writer", "state", "detail"),
    [
        (None, "warning", "without tokens"),
        ("publisher", "warning", "one token"),
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
    assert (half.state, half.remedy) == ("failed", "set SLACK_CHANNEL, or neither of the two")
    away: dict[str, Any] = {
        "slack_token": "xoxb-secret",
        "slack_channel": "#loads",
        "slack_api_url": "http://127.0.0.1:1/api/",
    }
    finding = examined(tmp_path, **away)["Slack"]
    assert finding.state == "failed" and "does not answer" in finding.detail and "secret" not in finding.detail


def test_what_spark_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    activity = ExamineSparkActivity(Settings(sluice_home=tmp_path)).examine_spark
    findings = {each.part: each for each in call(activity, ExamineSparkInput()).findings}
    assert "point JAVA_HOME at a suitable one" in findings["Java"].detail
    assert (findings["jars"].state, findings["jars"].remedy) == ("failed", "run `make setup`")
    assert findings["disk"].state in ("ok", "warning")


def test_without_temporal_the_rest_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    assert "doctor" in LAZY_COMMANDS
    result = CliRunner().invoke(app, ["doctor", "--json"])
    fields = json.loads(result.stdout)
    assert result.exit_code == fields["exit_code"] == 7
    assert [(each["part"], each["state"]) for each in fields["findings"]] == [
        ("settings", "ok"),
        ("Temporal", "failed"),
    ]
    monkeypatch.setenv("NESSIE_URI", "not an address")
    wrong = CliRunner().invoke(app, ["doctor"])
    assert wrong.exit_code == 2 and "NESSIE_URI" in wrong.output
