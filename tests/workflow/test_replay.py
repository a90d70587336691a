"""Stored histories replay on the present workflow, so that open runs survive a new version of it."""

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
from tests.harness.histories import REPLAYED_QUEUE, TARGET
from workflows.activity_calls import ActivityCalls
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone
from workflows.arrivals.zone_listings import ZoneListings
from workflows.backfills.backfill import Backfill
from workflows.run.start_pipeline import StartPipeline
from workflows.schedules.start_scheduled import StartScheduled
from workflows.write_audit_publish import WriteAuditPublish

ENDINGS = [
    *("published", "approved", "failed_audit", "rejected", "expired"),
    *("cancelled_during_write", "cancelled_while_waiting", "worker_killed"),
    *("rebased", "released", "rolled_back", "waived", "lineage", "registered", "checkpointed"),
]
STARTERS: dict[str, type] = {
    "landing_zone": LandingZone,
    "arrival_runs": ArrivalRuns,
    "start_pipeline": StartPipeline,
    "start_scheduled": StartScheduled,
    "backfill_each": Backfill,
    "backfill_together": Backfill,
}
"""The workflows that start runs, by the name of their history file."""
_EVENTS = 85
"""Maximum number of events of a run, whatever the size of its data.

A run that people approved, once more after a rebase, has this many events.
"""
_EVENTS_OF_A_ZONE = 200
"""Maximum number of events of a recorded landing zone, which was deployed, loaded a file and kept one out.

A landing zone continues as new when its history is long.
"""


def _history(ending: str) -> WorkflowHistory:
    """Return a history under the id of its workflow: some workflows derive the ids of their children from it."""
    text = (TARGET / f"{ending}.json").read_text()
    started = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], text)


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_history_replays(ending: str) -> None:
    replayer = Replayer(workflows=[WriteAuditPublish], data_converter=pydantic_data_converter)
    result = await replayer.replay_workflow(_history(ending))
    assert result.replay_failure is None


@pytest.mark.parametrize("file", sorted(STARTERS))
async def test_the_history_of_what_starts_runs_replays(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = _history(file)
    monkeypatch.setattr(Backfill, "_child_id", lambda _, partition: _children(history)[partition])
    result = await _replayer(STARTERS[file]).replay_workflow(history)
    assert result.replay_failure is None


def _replayer(workflow: type) -> Replayer:
    """Return a replayer on the task queue of the recording, without the sandbox, which would import unpatched modules.

    A landing zone compares its task queue, and the id of a backfill's child depends on a path of the machine.
    """
    prefix, build_id = REPLAYED_QUEUE.split("-")
    assert prefix == "replay", "the SDK names the queue so"
    return Replayer(
        workflows=[workflow],
        data_converter=pydantic_data_converter,
        workflow_runner=UnsandboxedWorkflowRunner(),
        build_id=build_id,
    )


def _children(history: WorkflowHistory) -> dict[str, str]:
    """Return the workflow ids of the children of a backfill, by partition."""
    events = [each.start_child_workflow_execution_initiated_event_attributes for each in history.events]
    ids = [each.workflow_id for each in events if each.workflow_id]
    return {id.removeprefix(f"{history.workflow_id}-").rpartition("-")[0]: id for id in ids}


def test_each_recorded_history_is_replayed() -> None:
    assert {file.stem for file in TARGET.glob("*.json")} == {*ENDINGS, *STARTERS}


async def test_a_landing_zone_with_another_timer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    end = ZoneListings.end

    def at_once(self: ZoneListings, *given: Any) -> None:
        end(self, *given)
        self.at = 0.0

    monkeypatch.setattr(ZoneListings, "end", at_once)
    with pytest.raises(NondeterminismError):
        await _replayer(LandingZone).replay_workflow(_history("landing_zone"))


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
        workflow_runner=UnsandboxedWorkflowRunner(),  # the sandbox would import the unpatched class
    )
    with pytest.raises(NondeterminismError):
        await replayer.replay_workflow(_history("published"))


@pytest.mark.parametrize("file", sorted(TARGET.glob("*.json")), ids=lambda file: file.stem)
def test_a_history_stays_small_and_names_no_machine(file: Path) -> None:
    text = file.read_text()
    payloads = [base64.b64decode(node).decode() for node in _payloads(json.loads(text))]
    assert sum(map(len, payloads)) < 64 * 1024
    assert len(json.loads(text)["events"]) <= (_EVENTS_OF_A_ZONE if file.stem == "landing_zone" else _EVENTS)
    for each in [text, *payloads]:
        assert not re.search(r"(?<![\w/])/(tmp|root|home|work|var)/", each)


def _payloads(node: Any) -> list[str]:
    if isinstance(node, dict):
        here = [node["data"]] if isinstance(node.get("data"), str) and "metadata" in node else []
        return here + [data for value in node.values() for data in _payloads(value)]
    return [data for value in node for data in _payloads(value)] if isinstance(node, list) else []
