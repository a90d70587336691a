"""Stored histories replay on the present workflow, so that runs under way survive a new version of it."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from sluice.contracts.publish import DiscardBranchInput
from tests.harness.record_histories import TARGET
from workflows.activity_calls import ActivityCalls
from workflows.write_audit_publish import WriteAuditPublish

ENDINGS = [
    *("published", "approved", "failed_audit", "rejected", "expired"),
    *("cancelled_during_write", "cancelled_while_waiting", "worker_killed"),
    *("rebased", "released", "rolled_back", "waived", "lineage", "registered"),
]

_EVENTS = 85
"""So many a run may leave at most, whatever its data's size: one that people approved, and once more on a newer main,
leaves as many."""


def _history(ending: str) -> WorkflowHistory:
    return WorkflowHistory.from_json(ending, (TARGET / f"{ending}.json").read_text())


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_history_replays(ending: str) -> None:
    replayer = Replayer(workflows=[WriteAuditPublish], data_converter=pydantic_data_converter)
    result = await replayer.replay_workflow(_history(ending))
    assert result.replay_failure is None


async def test_an_incompatible_change_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    execute = ActivityCalls.execute

    async def with_one_more_call(self: ActivityCalls, call: Any, input: Any) -> Any:
        if call is ActivityCalls.audit_branch:
            await execute(self, ActivityCalls.discard_branch, DiscardBranchInput(branch="one more"))
        return await execute(self, call, input)

    monkeypatch.setattr(ActivityCalls, "execute", with_one_more_call)
    replayer = Replayer(
        workflows=[WriteAuditPublish],
        data_converter=pydantic_data_converter,
        workflow_runner=UnsandboxedWorkflowRunner(),  # the sandbox would import the unchanged one
    )
    with pytest.raises(NondeterminismError):
        await replayer.replay_workflow(_history("published"))


@pytest.mark.parametrize("file", sorted(TARGET.glob("*.json")), ids=lambda file: file.stem)
def test_a_history_stays_small_and_names_no_machine(file: Path) -> None:
    text = file.read_text()
    payloads = [base64.b64decode(node).decode() for node in _payloads(json.loads(text))]
    assert sum(map(len, payloads)) < 64 * 1024
    assert len(json.loads(text)["events"]) <= _EVENTS
    for each in [text, *payloads]:
        assert not re.search(r"(?<![\w/])/(tmp|root|home|work|var)/", each)


def _payloads(node: Any) -> list[str]:
    if isinstance(node, dict):
        here = [node["data"]] if isinstance(node.get("data"), str) and "metadata" in node else []
        return here + [data for value in node.values() for data in _payloads(value)]
    return [data for value in node for data in _payloads(value)] if isinstance(node, list) else []
