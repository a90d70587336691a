"""New starts of ended runs: from the request alone, once, and with the reason where that is not possible."""

import asyncio
from typing import Any

import pytest

from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.publishing.start_again import may_start_again, start_again_refusal
from tests.harness.lake_on_page import LakeOnPage, StartedRun, button, form, notice
from tests.harness.page import session

CONFLICT = 409
SOURCE: dict[str, Any] = {"name": "p", "write": {"source": {"path": "/data/a.csv"}}, "tables": {"t.x": {}}}
PROGRAM: dict[str, Any] = {"name": "p", "write": {"job": "/jobs/j.py"}, "tables": {"t.x": {}}}


def request(pipeline: dict[str, Any] = SOURCE, **fields: Any) -> RunRequest:
    given = {"pipeline": pipeline, "input": RunInput(digest="0123456789abcdef"), "starter": "ben@laptop", **fields}
    return RunRequest.model_validate(given)


def result(outcome: str = "failed", **fields: Any) -> RunResult:
    return RunResult.model_validate({"run_id": "r", "workflow_id": "w", "pipeline": "p", "outcome": outcome, **fields})


RESUME = Resume(branch="quarantine/p", run_id="r", base="b", head="h")
RESTORE = Restore(runs=["r"], main_head="h", tables={"t.x": "b"})


@pytest.mark.parametrize(
    ("given", "ended", "why"),
    [
        (request(), result(), ""),
        (request(order=LoadOrder(partition="2026-01")), result("cancelled"), ""),
        (request({**PROGRAM, "write": {"mode": "sql", "statements": ["DELETE FROM t.x"]}}), result("discarded"), ""),
        (request({**PROGRAM, "write": {**PROGRAM["write"], **SOURCE["write"]}}), result(), ""),
        (request(PROGRAM), result(), "its program, which may have changed"),
        (request(resume=RESUME), result(), "release or repair that again"),
        (request(restore=RESTORE), result(), "roll the runs back again"),
        (request(target="backfill/p"), result(), "`backfill retry p`"),
        (request(asked_by="ana"), result(), "`backfill retry p`"),
        (request(starter="arrivals of p"), result(), "`arrivals p` shows them"),
        (request(one_content_per_path=True), result(), ""),
        (request(), result(cause="input_changed"), "Its files changed"),
        (None, result(), "Temporal no longer has its request"),
    ],
)
def test_the_request_says_if_it_can_be_repeated(given: RunRequest | None, ended: RunResult, why: str) -> None:
    reason = start_again_refusal(given, ended)
    assert why in reason and bool(why) == bool(reason)


def test_only_runs_that_published_and_quarantined_nothing_are_started_again() -> None:
    assert [
        outcome
        for outcome in ("published", "checked", "skipped", "quarantined", "discarded", "cancelled", "failed")
        if may_start_again(result(outcome))
    ] == ["discarded", "cancelled", "failed"]
    assert not may_start_again(RunResult(run_id="r", workflow_id="w", pipeline="p"))


# On the page


def failed(shown: LakeOnPage, given: RunRequest | None = None, outcome: str = "failed") -> StartedRun:
    """Return a run that has ended."""
    given = given or request(folder="/where/ben/was", publish=True, order=LoadOrder(partition="2026-01"))
    run = StartedRun("p-0123456789ab", "first", given, is_running=False, outcome=outcome)
    shown.started.append(run)
    return run


async def test_the_same_pipeline_and_input_start_once(shown: LakeOnPage) -> None:
    first = failed(shown)
    page = shown.page("ana")
    old = await page.get(first.path)
    assert "disabled" not in button(old, "/again")
    fields = form(old, "/again")
    answers = await asyncio.gather(*(shown.page().post_form(f"{first.path}/again", {**fields}) for _ in range(2)))
    _, second = shown.started
    assert [(each.status, each.headers["location"]) for each in answers] == [(303, second.path)] * 2
    assert second.workflow_id == first.workflow_id
    old_request, new = first.request, second.request
    assert (new.pipeline, new.input, new.folder, new.order) == (
        old_request.pipeline, old_request.input, old_request.folder, old_request.order,
    )  # fmt: skip
    assert new.starter.startswith("ana@")
    now = await page.get(first.path)
    assert "disabled" in button(now, "/again")
    assert f'It was started again already. <a href="{second.path}">Show it</a>' in now.text
    second.is_running = False
    late = await page.post_form(f"{first.path}/again", {**fields})
    assert late.status == CONFLICT and notice(late) == (
        "Nothing was started: p-0123456789ab started and ended since this page was opened. Read its result first."
    )
    assert len(shown.started) == 2
    assert (await page.post_form(f"{second.path}/again", {**fields})).status == 303


@pytest.mark.parametrize("outcome", ["published", "quarantined", "skipped"])
async def test_another_outcome_has_no_such_form(shown: LakeOnPage, outcome: str) -> None:
    run = failed(shown, outcome=outcome)
    page = shown.page()
    answer = await page.get(run.path)
    assert answer.status == 200 and "/again" not in answer.text
    refused = await page.post_form(f"{run.path}/again", {"form_token": session().form_token("ana")})
    assert refused.status == CONFLICT and notice(refused) == f"Nothing was started: the run is {outcome}."
    assert len(shown.started) == 1


async def test_a_run_under_way_is_not_started_again(shown: LakeOnPage) -> None:
    run = failed(shown)
    run.is_running = True
    refused = await shown.page().post_form(f"{run.path}/again", {"form_token": session().form_token("ana")})
    assert refused.status == CONFLICT and notice(refused) == "Nothing was started: the run has not ended."


@pytest.mark.parametrize(
    ("outcome", "link"),
    [("published", "{path}/rollback"), ("quarantined", "/quarantine#b")],
)
async def test_another_outcome_leads_to_what_can_be_done(shown: LakeOnPage, outcome: str, link: str) -> None:
    run = failed(shown, outcome=outcome)
    assert f'href="{link.format(path=run.path)}"' in (await shown.page().get(run.path)).text


async def test_a_disabled_button_names_the_reason(shown: LakeOnPage) -> None:
    run = failed(shown, request(PROGRAM))
    page = shown.page()
    old = await page.get(run.path)
    assert "disabled" in button(old, "/again") and "its program, which may have changed" in old.text
    answer = await page.post_form(f"{run.path}/again", {**form(old, "/again")})
    assert answer.status == CONFLICT and "which may have changed" in notice(answer) and len(shown.started) == 1


async def test_a_deployed_landing_zone_loads_its_files_itself(shown: LakeOnPage) -> None:
    run = failed(shown)
    page = shown.page()
    fields = form(await page.get(run.path), "/again")
    shown.client.zones.append("p")
    answer = await page.post_form(f"{run.path}/again", {**fields})
    assert answer.status == CONFLICT and "the landing zone of 'p' is deployed, and loads its files" in notice(answer)
    assert len(shown.started) == 1
