"""An operator's view of a run in Temporal's Web UI, in a real browser."""

import html
import re
import subprocess
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness


def _seen(chromium: str, url: str, profile: Path) -> str:
    """Return the text of a page and of its frames, after its scripts ran."""
    command = [
        *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={profile}", "--window-size=1600,2400", "--virtual-time-budget=20000", "--dump-dom", url),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=360, check=True)
    frames = [html.unescape(source) for source in re.findall(r'<iframe[^>]* src="(/render[^"]*)"', done.stdout)]
    inner = [_seen(chromium, url.split("/namespaces", maxsplit=1)[0] + source, profile) for source in frames]
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", done.stdout, flags=re.S)
    return " ".join([re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)), *inner])


@pytest.mark.sentinel("a browser")
async def test_the_run_its_summaries_and_its_details(
    chromium: str, system: SystemHarness, stack: dict[str, str], tmp_path: Path, client: Client
) -> None:
    source = csv_file(tmp_path / "seen.csv", [{"id": 1, "kind": None}, {"id": 2, "kind": "x"}])
    result = system.run(pipeline("seen", source, "[not_null: [id, kind]]")).json
    base = f"{stack['TEMPORAL_UI']}/namespaces/default/workflows/{result['workflow_id']}/{result['run_id']}"

    history = _seen(chromium, f"{base}/history", tmp_path / "profile")
    assert result["workflow_id"] in history and "WriteAuditPublish" in history
    assert f"ingest on wap/seen/{result['run_id']}/a1" in history
    assert result["branch"] in history

    details = _seen(chromium, f"{base}/user-metadata", tmp_path / "profile")
    assert "seen: t.seen from 1 file," in details
    assert "quarantined : the audit failed with 1 pass, 1 fail" in details
    assert "fail t.seen not_null(kind) 1 bad row no nulls metadata" in details

    description = await client.get_workflow_handle(result["workflow_id"]).describe()
    attributes = {key.name: value for key, value in ((p.key, p.value) for p in description.typed_search_attributes)}
    assert attributes["SluicePipeline"] == "seen"
    assert attributes["SluiceTable"] == ["t.seen"]
    assert attributes["SluiceOutcome"] == "quarantined"
