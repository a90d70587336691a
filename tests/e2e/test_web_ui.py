"""What an operator sees of a run in Temporal's Web UI, in a real browser."""

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

pytestmark = pytest.mark.warm


@pytest.fixture(scope="module")
def chromium() -> str:
    """A browser: the one there is, else Debian's, where it can be installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *step], env=quiet, capture_output=True, timeout=280, check=False)
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no chromium, and it could not be installed (needs root and apt-get)")
    return found


def _seen(chromium: str, url: str, profile: Path) -> str:
    """Return the text of a page, and of what it frames, after its scripts ran."""
    command = [
        *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={profile}", "--window-size=1600,2400", "--virtual-time-budget=20000", "--dump-dom", url),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    frames = [html.unescape(source) for source in re.findall(r'<iframe[^>]* src="(/render[^"]*)"', done.stdout)]
    inner = [_seen(chromium, url.split("/namespaces", maxsplit=1)[0] + source, profile) for source in frames]
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", done.stdout, flags=re.S)
    return " ".join([re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)), *inner])


@pytest.mark.timeout(900)  # the browser may have to be installed
async def test_the_run_its_summaries_and_its_details(
    chromium: str, system: SystemHarness, stack: dict[str, str], tmp_path: Path, client: Client
) -> None:
    source = csv_file(tmp_path / "seen.csv", [{"id": 1, "kind": None}])
    result = system.run(pipeline("seen", source, "[not_null: [id, kind]]")).json
    base = f"{stack['TEMPORAL_UI']}/namespaces/default/workflows/{result['workflow_id']}/{result['run_id']}"

    history = _seen(chromium, f"{base}/history", tmp_path / "profile")
    assert result["workflow_id"] in history and "WriteAuditPublish" in history
    assert f"ingest on wap/seen/{result['run_id']}/a1" in history
    assert result["branch"] in history

    details = _seen(chromium, f"{base}/user-metadata", tmp_path / "profile")
    assert "seen: t.seen from 1 file," in details
    assert "quarantined : the audit failed with 1 pass, 1 fail" in details
    assert "fail t.seen not_null(kind) 1 no nulls metadata" in details

    description = await client.get_workflow_handle(result["workflow_id"]).describe()
    found = {key.name: value for key, value in ((p.key, p.value) for p in description.typed_search_attributes)}
    assert found["SluicePipeline"] == "seen"
    assert found["SluiceTable"] == ["t.seen"]
    assert found["SluiceOutcome"] == "quarantined"
