"""An activity of a run begins only on the catalog that the run began with."""

import asyncio
import inspect
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MethodType
from typing import Any, cast, get_args

import pytest
from pydantic import BaseModel
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.approval.find_waivers import FindWaiversActivity
from activities.approval.require_approval import ApprovalPolicy, RequireApprovalActivity
from activities.audit.audit_branch import AuditBranchActivity
from activities.audit.scan_branch import ScanBranchActivity
from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from activities.backfills.collect_backfill import CollectBackfillActivity
from activities.catalog_identity import CatalogIdentity, WithCatalog
from activities.publishing.confirm_publication import ConfirmPublicationActivity
from activities.publishing.find_conflicts import FindConflictsActivity
from activities.publishing.publish_branch import PublishBranchActivity
from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.publishing.restore_tables import RestoreTablesActivity
from activities.quarantine.discard_quarantine import DiscardQuarantineActivity
from activities.quarantine.quarantine_branch import QuarantineBranchActivity
from activities.quarantine.quarantine_rows import QuarantineRowsActivity
from activities.quarantine.resume_branch import ResumeBranchActivity
from activities.run.discard_branch import DiscardBranchActivity
from activities.run.open_branch import OpenBranchActivity
from activities.run.record_run import RecordRunActivity
from activities.run.select_input import SelectInputActivity
from activities.run.target_catalog import TargetCatalog
from activities.run.verify_write import VerifyWriteActivity
from engine.duckdb_scan import DuckDBScan
from lakehouse.audit.audited_tables import AuditedTables
from sluice.approval.required import ApprovalTerms
from sluice.base_model import WireMessage
from sluice.contracts.audit import AuditInput, QuarantineRowsInput, ScanInput
from sluice.contracts.backfill import CollectBackfillInput
from sluice.contracts.existing_rows import RebaseBranchInput, Restore, RestoreTablesInput, Resume, ResumeBranchInput
from sluice.contracts.input import SelectInputInput
from sluice.contracts.publish import (
    ConfirmPublicationInput,
    DiscardBranchInput,
    FindConflictsInput,
    FindWaiversInput,
    RequireApprovalInput,
)
from sluice.contracts.quarantine import DiscardQuarantineInput, QuarantineBranchInput
from sluice.contracts.references import TARGET_HEADER, BranchRef, CatalogMessage, RunRef
from sluice.contracts.run import RecordRunInput, RunResult
from sluice.contracts.starting import PipelineText
from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult
from sluice.errors import CatalogChanged
from sluice.identifiers import backfill_branch
from sluice.pipeline.source import Source
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.publish_input import publish_input
from tests.harness.registered_activities import registered, signature
from workflows.activity_call import ActivityCall
from workflows.activity_calls import ActivityCalls

RUN = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
OTHER = "the catalog that the run began with"
WRITE = Write.model_validate({"source": {"path": "/in.csv"}})
UNUSED = cast(Any, None)


def _audit(branch: BranchRef) -> AuditInput:
    table = Table.model_validate({"checks": [{"check": "not_null", "column": "id"}]})
    head, known = branch.base, branch.catalog_id
    return AuditInput(
        run_ref=RUN, branch=branch.name, base=branch.base, head=head, catalog_id=known, tables={"t.x": table}
    )


def _scanner(catalog: MemoryCatalog, settings: Settings) -> TableScanner:
    return TableScanner(AuditedTables(catalog, {}), UNUSED, settings.storage)


class _Engine:
    name = "spark"


CASES: dict[str, Callable[[MemoryCatalog, BranchRef, Settings], tuple[Callable[..., Any], WireMessage]]] = {
    "open_branch": lambda catalog, branch, _: (
        OpenBranchActivity(catalog, {}, "here", UNUSED).open_branch,
        OpenBranchInput(
            run_ref=RUN, tables={}, schema_is_fixed=False, input_digest="d", again=True, catalog_id=branch.catalog_id
        ),
    ),
    "select_input": lambda catalog, branch, _: (
        SelectInputActivity(catalog, UNUSED, "here").select_input,
        SelectInputInput(
            run_ref=RUN,
            branch=branch,
            source=Source.model_validate({"path": "/in.csv"}),
            tables=["t.x"],
            input_digest="d",
            policy="skip",
            again=False,
            reads_selection=True,
        ),
    ),
    "collect_backfill": lambda catalog, branch, _: (
        CollectBackfillActivity(catalog, {}, UNUSED, "here").collect_backfill,
        CollectBackfillInput(
            branch=branch.name,
            catalog_id=branch.catalog_id,
            pipeline=PipelineText(name="p.yml", text="", folder="/"),
            values={},
            workflow_id="w",
            run_id="r",
            day="2026-01-31",
            expires="2026-02-14T00:00:00+00:00",
        ),
    ),
    "verify_write": lambda catalog, branch, _: (
        VerifyWriteActivity(catalog, {}).verify_write,
        VerifyWriteInput(run_ref=RUN, branch=branch, write=WRITE, tables=[], job=JobReport()),
    ),
    "audit_branch": lambda catalog, branch, settings: (
        AuditBranchActivity(AuditedTables(catalog, {}), UNUSED, settings.storage, []).audit_branch,
        _audit(branch),
    ),
    "scan_files": lambda catalog, branch, settings: (
        ScanFilesActivity(_scanner(catalog, settings), [cast(Any, _Engine())]).scan_files,
        ScanInput(audit=_audit(branch), undecided={"t.x": [0]}),
    ),
    "scan_branch": lambda catalog, branch, settings: (
        ScanBranchActivity(_scanner(catalog, settings), cast(Any, _Engine())).scan_branch,
        ScanInput(audit=_audit(branch), undecided={"t.x": [0]}),
    ),
    "quarantine_rows": lambda catalog, branch, settings: (
        QuarantineRowsActivity(
            AuditedTables(catalog, {}), cast(Any, _Spark(settings)), DuckDBScan(settings.scan)
        ).quarantine_rows,
        QuarantineRowsInput(audit=_audit(branch), failing={"t.x": [0]}),
    ),
    "find_conflicts": lambda catalog, branch, _: (
        FindConflictsActivity(catalog).find_conflicts,
        FindConflictsInput(branch=branch, head=branch.base),
    ),
    "rebase_branch": lambda catalog, branch, _: (
        RebaseBranchActivity(catalog, {}, "here").rebase_branch,
        RebaseBranchInput(
            run_ref=RUN.model_copy(update={"attempt": 2}),
            branch=branch,
            write_result=WriteResult(head=branch.base, tables={}),
            write=WRITE,
            rows_quarantined=False,
        ),
    ),
    "resume_branch": lambda catalog, branch, _: (
        ResumeBranchActivity(catalog, {}, "here").resume_branch,
        ResumeBranchInput(
            run_ref=RUN,
            resume=Resume(branch=branch.name, run_id="r", base=branch.base, head=branch.base),
            write=WRITE,
            tables=[],
            catalog_id=branch.catalog_id,
        ),
    ),
    "restore_tables": lambda catalog, branch, _: (
        RestoreTablesActivity(catalog, {}, "here").restore_tables,
        RestoreTablesInput(
            run_ref=RUN, restore=Restore(runs=[], main_head=branch.base, tables={}), catalog_id=branch.catalog_id
        ),
    ),
    "require_approval": lambda catalog, branch, _: (
        RequireApprovalActivity(ApprovalPolicy(catalog)).require_approval,
        RequireApprovalInput(branch=branch, head=branch.base, terms=ApprovalTerms()),
    ),
    "find_waivers": lambda catalog, branch, _: (
        FindWaiversActivity(ApprovalPolicy(catalog)).find_waivers,
        FindWaiversInput(run_ref=RUN, branch=branch, head=branch.base, terms=ApprovalTerms(), checks=[]),
    ),
    "publish_branch": lambda catalog, branch, _: (
        PublishBranchActivity(catalog, ApprovalPolicy(catalog)).publish_branch,
        publish_input(RUN, branch, branch.base, {}),
    ),
    "confirm_publication": lambda catalog, branch, _: (
        ConfirmPublicationActivity(catalog).confirm_publication,
        ConfirmPublicationInput(run_id="r", since=branch.base, catalog_id=branch.catalog_id),
    ),
    "discard_branch": lambda catalog, branch, _: (
        DiscardBranchActivity(catalog).discard_branch,
        DiscardBranchInput(branch=branch.name, catalog_id=branch.catalog_id),
    ),
    "discard_quarantine": lambda catalog, branch, _: (
        DiscardQuarantineActivity(catalog).discard_quarantine,
        DiscardQuarantineInput(branch=branch.name, head=branch.base, catalog_id=branch.catalog_id),
    ),
    "quarantine_branch": lambda catalog, branch, _: (
        QuarantineBranchActivity(catalog, "here").quarantine_branch,
        QuarantineBranchInput(branch=branch, name="quarantine/p/2026-01-31/r"),
    ),
    "record_run": lambda catalog, branch, _: (
        RecordRunActivity(catalog, UNUSED, UNUSED).record_run,
        RecordRunInput(
            run_ref=RUN,
            result=RunResult(run_id="r", workflow_id="w", pipeline="p"),
            catalog_id=branch.catalog_id,
            ended_at="2026-01-31T00:00:00+00:00",
        ),
    ),
}
NO_IDENTITY = {
    "write_table": "its job can commit to the attempt's branch alone, which no other catalog has; what it wrote is "
    "verified",
    "manage_quarantine": "a person names a branch of the catalog as it is now",
    "discard_backfill": "a person names a pipeline, and what it left in the catalog as it is now is deleted",
    "open_backfill": "it is the first to look at the catalog, and records which one it is",
    "reap_branches": "it looks at the branches of the catalog as it is now",
    **dict.fromkeys(
        (
            *("acquire_merge_slot", "release_merge_slot", "verify_decision", "can_notify", "notify", "checkpoint"),
            *("start_registrations", "notify_registration"),
            *("inspect_schedule", "pause_schedule", "notify_schedule", "prepare_run", "find_run_end"),
            "cancel_started_runs",
            *("read_batch", "split_batch", "notify_landing_zone", "report_arrival_runs", "find_ended_workflows"),
        ),
        "no catalog",
    ),
    "can_emit_lineage": "no catalog",
    "emit_lineage": "an event of another catalog leaves out the tables that the run read, and fails nothing",
    **dict.fromkeys(
        ("list_quarantine", "describe_quarantine", "plan_publish", "plan_release", "plan_rollback", "plan_requeue"),
        "a question",
    ),
    "check_registrations": "it compares targets with the catalog as it is now",
    "register_publication": "it brings targets to the catalog as it is now",
    "query_audit_results": "a question",
    "query_tables": "a question",
    "diff_tables": "a question",
    "list_files": "a question",
    "list_arrivals": "a question",
    "plan_load": "a question",
    "collect_arrivals": "it asks main as it is now, and the run that it leads to does so again",
    "finish_arrivals": "it asks main as it is now whether it contains what it tags or moves",
    "examine_installation": "it looks at the catalog as it is now",
    "examine_spark": "no catalog",
}
"""Reasons why the other activities do not compare the catalog's identity with a recorded one."""


class _Spark:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings.spark_jobs


@pytest.fixture
def settings(tmp_path: Any) -> Settings:
    return Settings.of(sluice_home=tmp_path)


@pytest.mark.parametrize("name", CASES)
async def test_another_catalog_is_refused_and_left_as_it_is(name: str, settings: Settings) -> None:
    """The other catalog has a branch of the same name, which must not be read, deleted or merged."""
    catalog = MemoryCatalog()
    base = catalog.initialize_main()
    catalog.create_branch(RUN.branch, base)
    before = catalog.list_branches()
    function, input = CASES[name](catalog, BranchRef(name=RUN.branch, base=base, catalog_id=OTHER), settings)
    with pytest.raises(ApplicationError) as refused:
        answer = run_activity(function, input)
        if inspect.isawaitable(answer):
            await answer
    assert (refused.value.type, refused.value.non_retryable) == ("CatalogChanged", True)
    assert catalog.list_branches() == before


def test_no_activity_is_forgotten() -> None:
    calls = {call.name for call in vars(ActivityCalls).values() if isinstance(call, ActivityCall)}
    assert calls == CASES.keys() | NO_IDENTITY.keys()


def names_a_catalog(kind: Any) -> bool:
    """Return True if a message of this type has the identity of a catalog, in itself or in a part."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields
        return "catalog_id" in fields or any(names_a_catalog(field.annotation) for field in fields.values())
    return any(map(names_a_catalog, get_args(kind)))


async def test_every_activity_whose_input_names_a_catalog_is_checked() -> None:
    """The worker checks a `CatalogMessage` against the catalog of the object that has the activity."""
    for method in itertools.chain(*await registered()):
        name, (input, *_), _ = signature(method)
        is_checked = issubclass(input, CatalogMessage)
        assert is_checked == (name in CASES), name
        assert is_checked or not names_a_catalog(input) or name == "emit_lineage", name
        if is_checked:
            owner = cast(WithCatalog, cast(MethodType, method).__self__)
            assert callable(owner.catalog.check_identity), name


class Execution(ActivityInboundInterceptor):
    """The innermost interceptor: it runs an activity that is no coroutine."""

    def __init__(self) -> None:
        pass

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return input.fn(*input.args)


def execute(catalog: MemoryCatalog, input: DiscardBranchInput, target: str = "") -> None:
    """Run `discard_branch` under the interceptors of a worker. Each target of runs has a catalog that was replaced."""

    def replaced(_: str) -> list[Callable[..., Any]]:
        return [DiscardBranchActivity(MemoryCatalog()).discard_branch]

    inner: ActivityInboundInterceptor = Execution()
    for each in (CatalogIdentity(), TargetCatalog(replaced)):
        inner = each.intercept_activity(inner)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, activity_type="discard_branch")
    method = DiscardBranchActivity(catalog).discard_branch
    headers = {TARGET_HEADER: Payload(data=target.encode())} if target else {}
    called = ExecuteActivityInput(method, [input], ThreadPoolExecutor(1), headers)
    asyncio.run(environment.run(inner.execute_activity, called))


def test_the_worker_refuses_an_activity_on_another_catalog() -> None:
    catalog = MemoryCatalog()
    catalog.create_branch("b", catalog.initialize_main())
    with pytest.raises(CatalogChanged, match="the catalog in memory is another than when the run began"):
        execute(catalog, DiscardBranchInput(branch="b", catalog_id=OTHER))
    assert catalog.find_head("b")
    execute(catalog, DiscardBranchInput(branch="b", catalog_id=catalog.identity()))
    assert catalog.find_head("b") is None


def test_the_worker_compares_the_catalog_of_the_branch_that_the_run_publishes_to() -> None:
    catalog = MemoryCatalog()
    input = DiscardBranchInput(branch="b", catalog_id=catalog.identity())
    execute(catalog, input)
    with pytest.raises(CatalogChanged):
        execute(catalog, input, target=backfill_branch("here", "p", "one"))


def test_an_input_that_names_no_catalog_is_not_compared() -> None:
    execute(MemoryCatalog(), DiscardBranchInput(branch="b"))
