"""People behind a proxy who decide about runs in Temporal: each in the own name, once, and within the own role."""

from collections.abc import AsyncIterator, Iterator

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment

from sluice.approval.required import RequiredApproval
from tests.harness.asgi import Browser
from tests.harness.page import behind_proxy, session
from tests.harness.waiting_run import WaitingRun, form_of, notice, started
from tests.harness.workflow import HEAD, WorkflowHarness

CONFLICT = 409
ROLES = "vera=viewer, ana=approver, ANA=approver, ana@example.org=approver, ben=approver, otto=operator"


@pytest.fixture(autouse=True)
def _real_time(own_time_skipping: WorkflowEnvironment) -> Iterator[None]:
    with own_time_skipping.auto_time_skipping_disabled():
        yield


@pytest.fixture
async def run(own_harness: WorkflowHarness) -> AsyncIterator[WaitingRun]:
    """A run that waits for two approvals, and that ana started."""
    run = await started(own_harness, RequiredApproval(required=2))
    yield run
    assert (await run.handle.describe()).status != WorkflowExecutionStatus.RUNNING, "the test leaves no run open"


def page_of(run: WaitingRun, person: str) -> Browser:
    return behind_proxy(run.harness.client, person, roles=ROLES)


async def test_each_person_decides_in_the_own_name_and_once(run: WaitingRun) -> None:
    """A name that differs in case or in its domain has a role of its own, and is the same person to an approval."""
    pages = {name: page_of(run, name) for name in ("ana", "ANA", "ana@example.org", "ben")}
    forms = {name: form_of(await page.get(run.path)) for name, page in pages.items()}
    assert (await run.submit(pages["ana"], forms["ana"])).status == 303
    for name in ("ana", "ANA", "ana@example.org"):
        mine = await pages[name].get(run.path)
        assert "You approved it already." in mine.text
        again = await run.submit(pages[name], forms[name])
        assert again.status == CONFLICT and f"{name} decided already" in notice(again)
    assert (await run.submit(pages["ben"], forms["ben"])).status == 303
    result = await run.end()
    assert result.approval and [each.by for each in result.approval.decisions] == ["ana", "ben"]


async def test_a_viewer_neither_decides_nor_cancels_and_an_approver_does_not_cancel(run: WaitingRun) -> None:
    vera, ana, otto = (page_of(run, name) for name in ("vera", "ana", "otto"))
    shown = await vera.get(run.path)
    assert shown.status == 200 and shown.text.count("disabled>") == 3
    assert "To decide about a run, you need the role approver or operator" in shown.text
    for decision in ("approve", "reject"):
        refused = await run.submit(vera, form_of(shown), decision, reason="no")
        assert refused.status == 403 and "you need the role approver or operator" in refused.text
    shown = await ana.get(run.path)
    assert shown.text.count("disabled>") == 1 and "To cancel a run, you need the role operator" in shown.text
    refused = await ana.post_form(f"{run.path}/cancel", {"form_token": session().form_token("ana")})
    assert refused.status == 403 and not await run.decisions()
    assert (await run.submit(ana, form_of(shown))).status == 303
    assert "disabled>" not in (await otto.get(run.path)).text
    await otto.post_form(f"{run.path}/cancel", {"form_token": session().form_token("otto")})
    result = await run.end()
    assert (result.outcome, result.reason) == ("cancelled", "cancelled by otto")


async def test_programs_decide_in_the_name_that_the_proxy_gives(run: WaitingRun) -> None:
    ana, ben, vera = (page_of(run, name) for name in ("ana", "ben", "vera"))
    path = f"/api/runs/{run.handle.id}/decision"
    request = {"decision": "approve", "report": HEAD}
    refused = await vera.post_json(path, request)
    assert refused.status == 403 and "you need the role approver or operator" in refused.json["error"]
    for other in ("ben", "ANA", "ana@example.org", " ana"):
        refused = await ana.post_json(path, {**request, "by": other})
        assert refused.status == 403
        assert refused.json["error"].startswith("You are ana on this page, and cannot decide as another person")
    assert not await run.decisions()
    for page, by in ((ana, ""), (ben, "ben")):
        answer = await page.post_json(path, {**request, "by": by})
        assert answer.status == 200, answer.text
    result = await run.end()
    assert result.approval and [each.by for each in result.approval.decisions] == ["ana", "ben"]


async def test_four_eyes_hold_for_every_spelling(own_harness: WorkflowHarness) -> None:
    run = await started(own_harness, RequiredApproval(required=1, starter="ana@laptop"))
    for name in ("ana", "ANA", "ana@example.org"):
        page = page_of(run, name)
        mine = await page.get(run.path)
        assert "four eyes are required" in mine.text
        assert (await run.submit(page, form_of(mine))).status == CONFLICT
    ben = page_of(run, "ben")
    assert (await run.submit(ben, form_of(await ben.get(run.path)))).status == 303
    assert (await run.end()).outcome == "published"
