"""The possible effects of a receiver of OpenLineage events on the sender, and the configuration of the sender."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.lineage.emit_lineage import EmitLineageActivity
from activities.lineage.lineage_client import is_configured
from devstack.stack import ROOT
from sluice.contracts.examination import Finding
from sluice.errors import ServiceUnavailable
from sluice.setting_groups import LineageSettings
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.examination import examined
from tests.harness.lineage import LineageReceiver, problems
from tests.harness.lineage_events import KEY, RUN, Lake
from tests.harness.memory_catalog import MemoryCatalog


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


def test_a_worker_without_events_does_not_import_the_client() -> None:
    shown = "import sys, worker; print([name for name in sys.modules if name.startswith('openlineage')])"
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
