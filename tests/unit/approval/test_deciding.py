"""`approve` and `reject` decide about the report that the person named, or saw and confirmed."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from cli.approval.approving import make_decision
from cli.run.report import print_report
from runtime.approval.deciding import refusal_in
from runtime.approval.shown_report import check_named_report, report_name, shown_report
from runtime.run.find_run import RunLookup
from runtime.run.reported_run import read_status
from sluice.approval.approvers import Approvers
from sluice.approval.decisions import Decision
from sluice.approval.signatures import new_approver_key, verification_error
from sluice.checks.verdicts import AuditReport, CheckResult
from sluice.contracts.run import RunResult, RunStatus, Stage
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.settings import Settings
from tests.harness.terminal import Terminal, type_in

HASH = "ab" * 32
PASSED = CheckResult(table="t.x", index=0, check="unique", columns=["a"], verdict="pass")
WARNED = PASSED.model_copy(update={"verdict": "warn"})


def result(*checks: CheckResult) -> RunResult:
    return RunResult(
        run_id="r", workflow_id="w", pipeline="p", branch="wap/p/r/a1", audited_hash=HASH, checks=list(checks)
    )


def decide(
    named: str = "",
    status: RunStatus | None = None,
    stage: Stage = "waiting for approval",
    key: str = "",
    out: io.StringIO | None = None,
) -> Decision:
    waiting = status or RunStatus(stage=stage, events=[], result=result(PASSED))
    return make_decision(
        "r",
        waiting,
        approve=True,
        by=" ana ",
        reason="fine",
        named=named,
        settings=Settings.of(sluice_approval_key_file=key).approval,
        console=Console(file=out or io.StringIO(), width=200),
        link="http://ui",
    )


def test_a_decision_holds_the_digest_of_what_was_shown() -> None:
    """It is computed from the shown report, not copied from the status, which somebody else may have sent."""
    report = shown_report(result(PASSED))
    forged = RunStatus(stage="waiting for approval", events=[], result=result(PASSED), audit_digest="forged")
    decision = decide(report_name(report), forged)
    assert (decision.by, decision.audited_hash, decision.audit_digest) == ("ana", HASH, report.digest)
    assert report.digest != shown_report(result(WARNED)).digest


def test_a_decision_is_signed_over_what_was_shown(tmp_path: Path) -> None:
    pem, public = new_approver_key()
    (tmp_path / "key").write_text(pem)
    decision = decide(HASH, key=str(tmp_path / "key"))
    approvers = Approvers({"ana": public})
    assert verification_error(decision, "r", approvers) == ""
    other = decision.model_copy(update={"audit_digest": shown_report(result(WARNED)).digest})
    assert "its signature is not ana's" in verification_error(other, "r", approvers)


REPORT = AuditReport(branch="b", audited_hash=HASH, checks=[PASSED])


@pytest.mark.parametrize("named", [HASH, HASH[:12], HASH.upper(), f"{HASH[:20]}:{REPORT.digest[:12]}"])
def test_a_report_is_named_by_its_hash_and_digest(named: str) -> None:
    check_named_report(named, REPORT)


@pytest.mark.parametrize(
    ("named", "why"),
    [
        (HASH[:11], "names no report"),
        ("latest", "names no report"),
        (f"{HASH}:", "names no report"),
        (f"{HASH}:abc", "names no report"),
        ("cd" * 32, "it is for the hash cdcdcdcdcdcd, but the run waits with abababababab: look again, with `status`"),
        (f"{HASH}:{'0' * 12}", "the audit report changed since it was shown: look again"),
    ],
)
def test_what_names_another_report_or_none(named: str, why: str) -> None:
    with pytest.raises(InvalidPipeline, match=why):
        check_named_report(named, REPORT)


def test_without_a_terminal_a_report_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, io.StringIO("y\n"))
    with pytest.raises(InvalidPipeline, match="say which report you saw"):
        decide()
    assert decide(stage="writing").audited_hash == HASH, "the run refuses it, with the stage"


@pytest.mark.parametrize("confirmed", [True, False])
def test_on_a_terminal_the_report_is_shown_and_the_person_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], confirmed: bool
) -> None:
    out, shown = io.StringIO(), io.StringIO()
    print_report(result(PASSED), "http://ui", Console(file=shown, width=200))
    printed_before: list[str] = []
    type_in(monkeypatch, Terminal("y\n" if confirmed else "n\n", lambda: printed_before.append(out.getvalue())))
    if confirmed:
        assert decide(out=out).audited_hash == HASH
    else:
        with pytest.raises(InvalidPipeline, match="nothing was decided"):
            decide(out=out)
    assert printed_before == [shown.getvalue()] and HASH[:12] in shown.getvalue()
    assert capsys.readouterr().err.startswith(f"Approve the report {report_name(shown_report(result(PASSED)))}? [y/N]")


async def test_nothing_is_decided_where_nobody_shows_the_report() -> None:
    class Unanswered:
        id = "wap-orders"

        async def query(self, *_: Any, **__: Any) -> None:
            raise RPCError("no poller", RPCStatusCode.DEADLINE_EXCEEDED, b"")

    described = SimpleNamespace(
        status=WorkflowExecutionStatus.RUNNING, raw_description=DescribeWorkflowExecutionResponse()
    )
    with pytest.raises(ServiceUnavailable, match="no worker answers for wap-orders: start one with `make up`"):
        await read_status(RunLookup(cast(Any, Unanswered()), cast(Any, described)))


def test_a_refusal_of_the_run_is_its_reason_alone() -> None:
    refused = WorkflowUpdateFailedError(ApplicationError("ana decided already", type="Refused"))
    assert refusal_in(refused) == "ana decided already"
