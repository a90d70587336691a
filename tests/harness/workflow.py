"""A run in a world of fakes, for tests of the order of things."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.testing import WorkflowEnvironment

from runtime.find_run import Handle, read_result
from sluice.contracts.activity_inputs import (
    AuditPlan,
    BranchRef,
    ConfirmPublicationInput,
    FindConflictsInput,
    JobReport,
    OpenBranchInput,
    Publication,
    PublishBranchInput,
    QuarantineBranchInput,
    QuarantineRowsResult,
    RebaseBranchInput,
    RebaseResult,
    TableChange,
    VerifyDecisionInput,
    VerifyWriteInput,
    WriteResult,
    WriteTableInput,
)
from sluice.contracts.merge_queue import MergeTicket
from sluice.contracts.run import Notification, Policy, RecordRunInput, RunInput, RunRequest, RunResult
from sluice.pipeline.model import Pipeline
from workflows.write_audit_publish import WriteAuditPublish

HEAD = "ab" * 32
NEWER = "cd" * 32
MERGED = Publication(merged=True, main_before="1", main_after="2")


def opened(name: str) -> BranchRef:
    """Return a branch that was made."""
    return BranchRef(name=name, base="b", catalog_id="c")


class World:
    """Fakes of every act. Each notes that it was called; a test says what each does instead of its best."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.instead: dict[str, Callable[[Any, int], Any]] = {}
        self.entered = asyncio.Event()

    def activities(self) -> list[Callable[..., Any]]:
        write_result = WriteResult(head=HEAD, tables={"t.x": TableChange(operation="append")})
        newer = write_result.model_copy(update={"head": NEWER})
        return [
            self._act(
                "open_branch",
                OpenBranchInput,
                lambda order: BranchRef(name=order.run_ref.branch, base="b", catalog_id="c"),
            ),
            self._act("write_table", WriteTableInput, lambda _: JobReport()),
            self._act(
                "verify_write",
                VerifyWriteInput,
                lambda _: write_result,
            ),
            self._act("audit_branch", dict, lambda _: AuditPlan(decided=[])),
            self._act("scan_branch", dict, lambda _: AuditPlan(decided=[])),
            self._act("scan_files", dict, lambda _: AuditPlan(decided=[])),
            self._act("quarantine_rows", dict, lambda _: QuarantineRowsResult(bad_rows={"t.x": 2})),
            self._act("record_run", RecordRunInput, lambda _: "report.json"),
            self._act(
                "publish_branch",
                PublishBranchInput,
                lambda _: Publication(merged=True, main_before="1", main_after="2"),
            ),
            self._act("acquire_merge_slot", MergeTicket, lambda _: None),
            self._act("release_merge_slot", MergeTicket, lambda _: None),
            self._act("verify_decision", VerifyDecisionInput, lambda _: ""),
            self._act("find_conflicts", FindConflictsInput, lambda _: []),
            self._act(
                "rebase_branch",
                RebaseBranchInput,
                lambda order: RebaseResult(branch=opened(order.run_ref.branch), write_result=newer),
            ),
            self._act("confirm_publication", ConfirmPublicationInput, lambda _: Publication(merged=False)),
            self._act("discard_branch", str, lambda _: None),
            self._act("quarantine_branch", QuarantineBranchInput, lambda order: order.name),
            self._act("can_notify", Notification, lambda _: True),
            self._act("notify", Notification, lambda _: None),
        ]

    def _act(self, name: str, kind: type, best: Callable[[Any], Any]) -> Callable[..., Any]:
        async def act(order: Any) -> Any:
            self.called.append(name)
            instead = self.instead.get(name)
            return await instead(order, self.called.count(name)) if instead else best(order)

        act.__annotations__["order"] = kind
        return activity.defn(name=name)(act)


async def fails_for_good(_: Any, __: int) -> Any:
    raise ApplicationError("it is wrong", type="InvalidInput", non_retryable=True)


async def fails_with_a_bug(_: Any, __: int) -> Any:
    raise ApplicationError("a bug", type="KeyError", non_retryable=True)


class Scene:
    """One run in a world of fakes."""

    def __init__(self, environment: WorkflowEnvironment, world: World) -> None:
        self._environment, self.world = environment, world
        self.queue = str(uuid.uuid4())

    async def start(self, policy: Policy | None = None, **pipeline: Any) -> Handle:
        stated = {"name": "p", "write": {"job": "job.py"}, "tables": {"t.x": {}}, **pipeline}
        request = RunRequest(
            pipeline=Pipeline.model_validate(stated),
            input=RunInput(digest="d"),
            starter="tester",
            policy=policy or Policy(max_rewrites=2, step_timeout=600),
        )
        return await self._environment.client.start_workflow(
            WriteAuditPublish.run, request, id=f"p-{uuid.uuid4().hex[:12]}", task_queue=self.queue
        )

    async def end(self, handle: Handle) -> RunResult:
        """Wait for the end, skipping time; return the result whatever the ending."""
        try:
            await handle.result()
        except WorkflowFailureError as failure:
            assert isinstance(failure.cause, ApplicationError | CancelledError), failure.cause
        found = await read_result(self._environment.client, await handle.describe())
        assert found
        return found
