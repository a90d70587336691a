"""The workflow harness: runs with fakes in place of all activities, on the time-skipping server or a real one."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError

from runtime.run.find_run import Handle, read_result
from sluice.approval.required import RequiredApproval, required_approval
from sluice.contracts.audit import AuditResult, QuarantineRowsResult
from sluice.contracts.existing_rows import (
    ExistingRowsResult,
    RebaseBranchInput,
    RebaseResult,
    RestoreTablesInput,
    Resume,
    ResumeBranchInput,
)
from sluice.contracts.input import SelectInputInput
from sluice.contracts.lineage import EmitLineageInput
from sluice.contracts.load_order import ANY_ORDER, LoadOrder
from sluice.contracts.merge_queue import MergeTicket
from sluice.contracts.publish import (
    ConfirmPublicationInput,
    DiscardBranchInput,
    FindConflictsInput,
    FindWaiversInput,
    Publication,
    PublishBranchInput,
    RequireApprovalInput,
    VerifyDecisionInput,
)
from sluice.contracts.quarantine import DiscardQuarantineInput, QuarantineBranchInput
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.registration import StartRegistrationsInput
from sluice.contracts.run import Notification, RecordRunInput, RunResult
from sluice.contracts.run_request import REVISION, Policy, RunInput, RunRequest
from sluice.contracts.selected_input import ManifestRef, SelectedInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult, WriteTableInput
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import PublishOptions
from workflows.write_audit_publish import WriteAuditPublish

HEAD = "ab" * 32
NEWER = "cd" * 32
MANIFEST = ManifestRef(location="lake/a1.jsonl", digest="d1")
MERGED = Publication(merged=True, main_before="1", main_after="2")


def opened(name: str) -> BranchRef:
    """Return an opened branch."""
    return BranchRef(name=name, base="b", catalog_id="c")


def _as_the_pipeline_says(input: RequireApprovalInput) -> RequiredApproval:
    return required_approval(input.terms, [], [], signed=False, verified_starter="", at_least=input.at_least)


def brought(given: Any) -> ExistingRowsResult:
    """Return an attempt's branch with the rows of a quarantine, or of an earlier main."""
    write_result = WriteResult(head=HEAD, tables={"t.x": TableChange(operation="append")})
    return ExistingRowsResult(branch=opened(given.run_ref.branch), write_result=write_result)


class FakeActivities:
    """Fakes of every activity. Each records its calls; a test overrides its behaviour."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.overrides: dict[str, Callable[[Any, int], Any]] = {}
        self.entered = asyncio.Event()

    @property
    def steps(self) -> list[str]:
        """The calls in order, without queries that a run may make at any time."""
        return [call for call in self.calls if call != "can_emit_lineage"]

    def activities(self) -> list[Callable[..., Any]]:
        write_result = WriteResult(head=HEAD, tables={"t.x": TableChange(operation="append")})
        newer = write_result.model_copy(update={"head": NEWER})

        return [
            self._fake(
                "open_branch",
                OpenBranchInput,
                lambda given: BranchRef(name=given.run_ref.branch, base="b", catalog_id="c"),
            ),
            self._fake("select_input", SelectInputInput, lambda _: SelectedInput(manifest=MANIFEST, files=1)),
            self._fake("write_table", WriteTableInput, lambda _: JobReport()),
            self._fake(
                "verify_write",
                VerifyWriteInput,
                lambda _: write_result,
            ),
            self._fake("audit_branch", dict, lambda _: AuditResult(decided=[])),
            self._fake("scan_branch", dict, lambda _: AuditResult(decided=[])),
            self._fake("scan_files", dict, lambda _: AuditResult(decided=[])),
            self._fake("quarantine_rows", dict, lambda _: QuarantineRowsResult(bad_rows={"t.x": 2})),
            self._fake("record_run", RecordRunInput, lambda _: "report.json"),
            self._fake(
                "publish_branch",
                PublishBranchInput,
                lambda _: Publication(merged=True, main_before="1", main_after="2"),
            ),
            self._fake("acquire_merge_slot", MergeTicket, lambda _: None),
            self._fake("release_merge_slot", MergeTicket, lambda _: None),
            self._fake("verify_decision", VerifyDecisionInput, lambda _: ""),
            self._fake("require_approval", RequireApprovalInput, _as_the_pipeline_says),
            self._fake("find_waivers", FindWaiversInput, lambda _: []),
            self._fake("find_conflicts", FindConflictsInput, lambda _: []),
            self._fake(
                "rebase_branch",
                RebaseBranchInput,
                lambda given: RebaseResult(branch=opened(given.run_ref.branch), write_result=newer),
            ),
            self._fake("confirm_publication", ConfirmPublicationInput, lambda _: Publication(merged=False)),
            self._fake("resume_branch", ResumeBranchInput, brought),
            self._fake("restore_tables", RestoreTablesInput, brought),
            self._fake("discard_branch", DiscardBranchInput, lambda _: None),
            self._fake("discard_quarantine", DiscardQuarantineInput, lambda _: ""),
            self._fake("quarantine_branch", QuarantineBranchInput, lambda given: given.name),
            self._fake("start_registrations", StartRegistrationsInput, lambda _: []),
            self._fake("checkpoint", str, lambda _: None),
            self._fake("can_notify", Notification, lambda _: True),
            self._fake("notify", Notification, lambda _: None),
            self._fake("can_emit_lineage", RunRef, lambda _: False),
            self._fake("emit_lineage", EmitLineageInput, lambda _: None),
        ]

    def _fake(self, name: str, kind: type, default: Callable[[Any], Any]) -> Callable[..., Any]:
        async def fake(activity_input: Any) -> Any:
            self.calls.append(name)
            override = self.overrides.get(name)
            return await override(activity_input, self.calls.count(name)) if override else default(activity_input)

        fake.__annotations__["activity_input"] = kind
        return activity.defn(name=name)(fake)


async def fails_for_good(_: Any, __: int) -> Any:
    raise ApplicationError("it is wrong", type="InvalidInput", non_retryable=True)


async def fails_with_a_bug(_: Any, __: int) -> Any:
    raise ApplicationError("a bug", type="KeyError", non_retryable=True)


class WorkflowHarness:
    """Start runs, and wait for their end."""

    def __init__(self, client: Client, fakes: FakeActivities) -> None:
        self.client, self.fakes = client, fakes
        self.queue = str(uuid.uuid4())

    async def start(
        self,
        policy: Policy | None = None,
        resume: Resume | None = None,
        *,
        publish: bool = True,
        order: LoadOrder = ANY_ORDER,
        commit: PublishOptions | None = None,
        guarantee: str = "",
        **pipeline: Any,
    ) -> Handle:
        policy = policy or Policy(max_rewrites=2, step_timeout=600)
        stated = {"name": "p", "write": {"job": "job.py"}, "tables": {"t.x": {}}, "publish": commit, **pipeline}
        request = RunRequest(
            pipeline=Pipeline.model_validate(stated),
            input=RunInput(digest="d"),
            starter="tester",
            resume=resume,
            order=order,
            publish=publish,
            revision=REVISION,
            guarantee=guarantee,
            policy=policy.model_copy(update={"spark_queue": policy.spark_queue or self.queue}),
        )
        return await self.client.start_workflow(
            WriteAuditPublish.run, request, id=f"p-{uuid.uuid4().hex[:12]}", task_queue=self.queue
        )

    async def end(self, handle: Handle) -> RunResult:
        """Wait for the end, skipping time if the server can; return the result of any ending."""
        try:
            await handle.result()
        except WorkflowFailureError as failure:
            assert isinstance(failure.cause, ApplicationError | CancelledError), failure.cause
        result = await read_result(self.client, await handle.describe())
        assert result
        return result
