"""Decisions that a browser signs: the page never has the key, and the workers verify each signature."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from temporalio.testing import WorkflowEnvironment

from activities.approval.verify_decision import VerifyDecisionActivity
from sluice.approval.approvers import Approvers
from sluice.approval.required import RequiredApproval
from sluice.approval.signatures import new_approver_key, verification_error
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.publish import Publication, PublishBranchInput, VerifyDecisionInput
from tests.harness.asgi import Answer
from tests.harness.waiting_run import WaitingRun, form_of, in_days, notice, started
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness

CONFLICT = 409
REASON = 'looks right: \u00e4 \U0001f600 \u2028 </script> "quoted"\r\nsecond line'


@pytest.fixture(autouse=True)
def _real_time(own_time_skipping: WorkflowEnvironment) -> Iterator[None]:
    with own_time_skipping.auto_time_skipping_disabled():
        yield


@dataclass(frozen=True)
class Key:
    """A person's key, as the browser has it."""

    pem: str
    public: str

    def sign(self, text: str) -> str:
        key = load_pem_private_key(self.pem.encode(), None)
        assert isinstance(key, Ed25519PrivateKey)
        return base64.b64encode(key.sign(text.encode())).decode()


@dataclass
class Signing:
    """A run whose workers count signed decisions alone."""

    run: WaitingRun
    keys: dict[str, Key]

    async def form(self, person: str = "ana") -> dict[str, str]:
        return form_of(await self.run.page(person).get(self.run.path))

    async def statement(self, person: str = "ana", decision: str = "approve", **fields: Any) -> dict[str, Any]:
        """Return the fields of a form, with the text to sign."""
        sent = {**await self.form(person), "decision": decision, **fields}
        answer = await self.run.page(person).post_form(f"{self.run.path}/statement", sent)
        assert answer.status == 200, answer.text
        return {**sent, "statement": answer.json["statement"]}

    async def send(self, sent: dict[str, Any], key: str, person: str = "ana") -> Answer:
        return await self.send_as_signed({**sent, "signature": self.keys[key].sign(sent["statement"])}, person)

    async def send_as_signed(self, sent: dict[str, Any], person: str = "ana") -> Answer:
        return await self.run.page(person).post_form(f"{self.run.path}/decision", sent)

    async def refused(self, sent: dict[str, Any], key: str, why: str, person: str = "ana") -> None:
        """Send a form that another person may have signed, with the person's own token; assert that it is refused."""
        token = (await self.form(person))["form_token"]
        answer = await self.send({**sent, "form_token": token}, key, person)
        assert (answer.status, why in notice(answer)) == (CONFLICT, True), notice(answer)
        assert notice(answer).startswith("Nothing was decided: ") and not await self.run.decisions()


@pytest.fixture
def keys(own_harness: WorkflowHarness, tmp_path: Path) -> dict[str, Key]:
    """The keys of people, verified by the activity of real workers. Zoe is not listed."""
    keys = {name: Key(*new_approver_key()) for name in ("ana", "ben", "zoe")}
    file = tmp_path / "approvers"
    file.write_text("".join(f"{name} {key.public}\n" for name, key in keys.items() if name != "zoe"))
    verify = VerifyDecisionActivity(str(file))

    async def verify_decision(input: VerifyDecisionInput, _: int) -> str:
        return verify.verify_decision(input)

    own_harness.fakes.overrides["verify_decision"] = verify_decision
    return keys


async def signing(harness: WorkflowHarness, keys: dict[str, Key], required: int = 1, **pipeline: Any) -> Signing:
    return Signing(await started(harness, RequiredApproval(required=required, signed=True), **pipeline), keys)


async def test_a_browser_signs_what_the_command_signs(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    signed = await signing(own_harness, keys)
    shown = (await signed.run.page().get(signed.run.path)).text
    assert f'data-signing data-person="ana" data-run="{signed.run.path.rpartition("/")[2]}" data-hash="{HEAD}"' in shown
    assert '<button class="button primary wide" disabled>' in shown, "without JavaScript, the command signs"
    form = await signed.form()
    command = f"approve {signed.run.handle.id} --hash {form['report']} --by ana"
    assert f"SLUICE_APPROVAL_KEY_FILE=~/.sluice-key python run_workflow.py {command}</code>" in shown
    sent = await signed.statement(reason=REASON)
    stated = json.loads(sent["statement"])
    assert (stated["approve"], stated["by"], stated["audited_hash"], stated["reason"]) == (True, "ana", HEAD, REASON)
    answer = await signed.send({**sent, "reason": REASON.replace("\r\n", "\n")}, "ana")
    assert answer.status == 303, notice(answer)
    result = await signed.run.end()
    assert result.outcome == "published" and result.approval
    (decision,) = result.approval.decisions
    assert verification_error(decision, result.run_id, Approvers({"ana": keys["ana"].public})) == ""
    again = await signed.send(sent, "ana")
    assert notice(again) == "Nothing was decided: the run has ended."


async def test_a_program_sends_what_a_person_signed(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    signed = await signing(own_harness, keys)
    page, path = signed.run.page(), f"/api/runs/{signed.run.handle.id}"
    approval = {"decision": "approve", "report": (await signed.form())["report"], "reason": REASON}
    unsigned = await page.post_json(f"{path}/decision", approval)
    assert unsigned.status == CONFLICT and "it is not signed" in unsigned.json["error"]
    text = (await page.post_json(f"{path}/statement", approval)).json["statement"]
    sent = {**approval, "statement": text, "signature": keys["ana"].sign(text)}
    for wrong, why in (
        ({"signature": keys["ben"].sign(text)}, "its signature is not ana's"),
        ({"reason": "another"}, "the signed text states another decision than the request"),
        ({"decision": "reject"}, "the signature approves, and the request does not"),
        ({"statement": f"{text} "}, "the signed text is not that of a decision"),
    ):
        refused = await page.post_json(f"{path}/decision", {**sent, **wrong})
        assert refused.status == CONFLICT and why in refused.json["error"], refused.text
    assert not await signed.run.decisions()
    stale = await page.post_json(f"{path}/statement", {**approval, "report": NEWER})
    assert stale.status == CONFLICT
    decided = await page.post_json(f"{path}/decision", sent)
    assert decided.status == 200 and decided.json["signature"] == sent["signature"], decided.text
    result = await signed.run.end()
    assert result.outcome == "published" and result.approval and len(result.approval.decisions) == 1


async def test_signatures_that_do_not_count(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    signed = await signing(own_harness, keys)
    sent = await signed.statement()
    text = sent["statement"]
    unsigned = await signed.send_as_signed({**await signed.form(), "decision": "approve"})
    assert "it is not signed" in notice(unsigned)
    await signed.refused(sent, "ben", "its signature is not ana's")
    for wrong in ("", "AAAA", "no base64 \u00e4", base64.b64encode(bytes(64)).decode()):
        answer = await signed.send_as_signed({**sent, "signature": wrong})
        assert answer.status == CONFLICT and "Nothing was decided" in notice(answer), wrong
    await signed.refused({**sent, "statement": text.replace(HEAD, NEWER)}, "ana", "is for the hash cdcdcdcdcdcd, but")
    await signed.refused({**sent, "decision": "reject", "reason": "no"}, "ana", "a rejection needs a reason")
    rejecting = await signed.statement(decision="reject", reason="not yet")
    await signed.refused({**rejecting, "decision": "approve"}, "ana", "the signature rejects, and the request does not")
    await signed.refused(sent, "ana", "ana signed the decision, and ben sends it", person="ben")
    await signed.refused({**sent, "waive": "unique(id)", "until": in_days(5)}, "ana", "a waiver needs a reason")
    run_id = json.loads(text)["run_id"]
    await signed.refused({**sent, "statement": text.replace(run_id, "other")}, "ana", "is for another run: other")
    for broken in (
        f"{text} ",
        text.replace('"approve":true', '"approve":true,"more":1'),
        "{}",
        "[]",
        "[" * 90_000,
        "1",
    ):
        await signed.refused({**sent, "statement": broken}, "ana", "the signed text is not that of a decision")
    assert (await signed.send(sent, "ana")).status == 303
    await signed.run.end()


async def test_a_person_who_is_not_listed(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    signed = await signing(own_harness, keys)
    sent = await signed.statement("zoe")
    await signed.refused(sent, "zoe", "zoe is not listed among those who may decide", person="zoe")
    await signed.refused(sent, "ana", "zoe signed the decision, and ana sends it")
    assert (await signed.send(await signed.statement(), "ana")).status == 303
    await signed.run.end()


async def test_an_old_signature_is_not_used_again(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    """Neither as a second person's, nor after a conflict, when another hash waits."""

    async def conflict_once(_: PublishBranchInput, call: int) -> Publication:
        return MERGED if call > 1 else Publication(merged=False, conflicts=["t.x"])

    own_harness.fakes.overrides["publish_branch"] = conflict_once
    signed = await signing(own_harness, keys, required=2)
    old = await signed.statement()
    assert (await signed.send(old, "ana")).status == 303
    again = await signed.send(old, "ana")
    assert again.status == CONFLICT and "ana decided already; 2 different people are required" in notice(again)
    assert (await signed.send(await signed.statement("ben"), "ben", "ben")).status == 303
    await signed.run.waits(NEWER)
    await signed.refused(old, "ana", "the data changed since this page was opened: abababa is now cdcdcdc")
    new = await signed.form()
    await signed.refused(
        {**old, "report": new["report"]}, "ana", "the signature is for the hash abababababab, but the run"
    )
    for name in ("ana", "ben"):
        assert (await signed.send(await signed.statement(name), name, name)).status == 303
    result = await signed.run.end()
    assert result.approval and [each.by for each in result.approval.decisions] == ["ana", "ben"]


async def test_waivers_are_signed(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    async def audit(_: Any, __: int) -> AuditResult:
        failed = CheckResult(table="t.x", index=0, check="unique", columns=["id"], verdict="fail", failed_rows=2)
        return AuditResult(decided=[failed])

    own_harness.fakes.overrides["audit_branch"] = audit
    checks = [{"check": "unique", "column": "id", "waivable": True}]
    signed = await signing(own_harness, keys, tables={"t.x": {"checks": checks}})
    shown = (await signed.run.page().get(signed.run.path)).text
    assert "--waive &#39;unique(id)&#39; --reason REASON --until DATE" in shown
    early = await signed.run.page().post_form(f"{signed.run.path}/statement", {**await signed.form(), "reason": "late"})
    assert early.status == CONFLICT and "has to waive unique(id) of t.x" in early.json["error"]
    sent = await signed.statement(waive="unique(id)", reason="late feed", until=in_days(5))
    (waiver,) = json.loads(sent["statement"])["waivers"]
    assert (waiver["check"], waiver["table"], waiver["reason"]) == ("unique(id)", "t.x", "late feed")
    longer = {**sent, "until": in_days(30)}
    await signed.refused(longer, "ana", "the signed text states another decision than the request")
    assert (await signed.send(sent, "ana")).status == 303
    assert [each.check for each in (await signed.run.end()).waived] == ["unique(id)"]


async def test_the_text_to_sign_is_for_people_of_this_page(own_harness: WorkflowHarness, keys: dict[str, Key]) -> None:
    signed = await signing(own_harness, keys)
    form, path = await signed.form(), f"{signed.run.path}/statement"
    page = signed.run.page()
    assert (await page.post_form(path, {**form, "form_token": "x"})).status == 403
    assert (await page.post_form(path, {**form}, origin="http://evil.example")).status == 403
    stranger = signed.run.page()
    stranger.cookies.clear()
    assert (await stranger.post_form(path, {**form})).status == 303
    await signed.send(await signed.statement(decision="reject", reason="no"), "ana")
    ended = await signed.run.end()
    assert ended.cause == "rejected"
    late = await page.post_form(path, {**form})
    assert late.status == CONFLICT and late.json["error"] == "Nothing was decided: the run has ended."


async def test_the_key_of_the_page_signs_as_before(
    own_harness: WorkflowHarness, keys: dict[str, Key], tmp_path: Path
) -> None:
    signed = await signing(own_harness, keys)
    (tmp_path / "key").write_text(keys["ana"].pem)
    page = signed.run.page(key=tmp_path / "key")
    shown = await page.get(signed.run.path)
    assert "The page signs with the key in" in shown.text and "data-signing" not in shown.text
    assert '<button class="button primary wide">' in shown.text
    assert (await signed.run.submit(page, form_of(shown))).status == 303
    await signed.run.end()
