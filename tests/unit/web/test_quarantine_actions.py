"""Release, repair, keep and discard on the page: what was shown is what is done, once, and as by the command."""

import asyncio
import getpass
import html
import re
from datetime import datetime, timedelta, timezone

import pytest

from lakehouse.quarantine.quarantined_branches import list_quarantined_branches, read_quarantined_branch
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.errors import ServiceUnavailable
from sluice.publishing.commit_properties import EXPIRES
from sluice.times import parse_time
from tests.harness.asgi import Answer, Browser
from tests.harness.lake_on_page import LakeOnPage, button, form, notice
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE
from web.quarantine.quarantine_view import view_quarantine
from web.run.starting import LatestStart

CONFLICT = 409
ACTIONS = ("release", "repair", "keep", "discard")
TYPED: dict[str, dict[str, str]] = {"repair": {"sql": "DELETE FROM t.x WHERE id = 1"}, "keep": {"how_long": "30d"}}
RELOAD = "Reload the page."


async def submit(page: Browser, action: str, given: Answer, **fields: str) -> Answer:
    """Send a form as an answer showed it."""
    return await page.post_form(f"/quarantine/{action}", {**form(given, action), **TYPED.get(action, {}), **fields})


def state(lake: MemoryLake) -> dict[str, str]:
    return {each.name: each.head for each in lake.catalog.list_branches("")}


@pytest.mark.parametrize("action", ["release", "repair"])
async def test_a_run_starts_with_the_request_of_the_command(shown: LakeOnPage, action: str) -> None:
    run = shown.run()
    run.quarantined(1, 2)
    page = shown.page(getpass.getuser())
    answer = await submit(page, action, await page.get("/quarantine"))
    (started,) = shown.started
    assert (answer.status, answer.headers["location"]) == (303, started.path)
    shown.started.clear()
    words = ["--sql", TYPED["repair"]["sql"]] if action == "repair" else []
    done = await shown.command("quarantine", action, run.run_id, "--detach", *words)
    assert done.exit_code == 0, done.output
    (typed,) = shown.started
    assert typed.request == started.request and typed.workflow_id == started.workflow_id
    resume = started.request.resume
    assert resume and (resume.run_id, bool(resume.statements)) == (run.run_id, action == "repair")
    assert started.request.starter.startswith(f"{getpass.getuser()}@")


async def test_keep_and_discard_name_their_person_and_the_head(shown: LakeOnPage) -> None:
    branch = shown.run().quarantined(1)
    page = shown.page("ana")
    head = read_quarantined_branch(shown.lake.catalog, branch).head
    answer = await submit(page, "keep", await page.get("/quarantine"))
    assert (answer.status, answer.headers["location"]) == (303, "/quarantine")
    kept = read_quarantined_branch(shown.lake.catalog, branch)
    assert parse_time(kept.properties[EXPIRES]) - datetime.now(timezone.utc) > timedelta(days=29)
    assert (await submit(page, "discard", await page.get("/quarantine"))).status == 303
    assert not list_quarantined_branches(shown.lake.catalog)
    asked = [(each.action, each.by, each.branch, each.head) for each in shown.client.managed]
    assert asked == [("keep", "ana", branch, head), ("discard", "ana", branch, kept.head)]


@pytest.mark.parametrize("action", ACTIONS)
async def test_nothing_is_done_to_a_quarantine_that_changed(shown: LakeOnPage, action: str) -> None:
    branch = shown.run().quarantined(1)
    page = shown.page()
    old = await page.get("/quarantine")
    assert (await shown.command("quarantine", "keep", branch, "--for", "60d")).exit_code == 0
    before, asked = state(shown.lake), len(shown.client.managed)
    answer = await submit(page, action, old)
    now = read_quarantined_branch(shown.lake.catalog, branch).head
    assert answer.status == CONFLICT
    was = form(old, action)["head"][:7]
    assert notice(answer) == (
        f"Nothing was done: the quarantine changed since this page was opened: {was} is now {now[:7]}. {RELOAD}"
    )
    assert (state(shown.lake), shown.started, len(shown.client.managed)) == (before, [], asked)
    assert form(answer, action)["head"] == now, "the answer shows the present state"


@pytest.mark.parametrize("action", ["keep", "discard"])
async def test_a_change_after_the_page_looked_is_refused_by_the_worker(shown: LakeOnPage, action: str) -> None:
    branch = shown.run().quarantined(1)
    page = shown.page()
    old = await page.get("/quarantine")

    def keep_meanwhile() -> None:
        kept = read_quarantined_branch(shown.lake.catalog, branch)
        shown.lake.catalog.commit_tables(branch, kept.head, "kept", properties={**kept.properties, EXPIRES: "2027"})

    shown.client.after("list_quarantine", keep_meanwhile)
    answer = await submit(page, action, old)
    assert answer.status == CONFLICT and "changed since it was shown. Nothing was done" in notice(answer)
    assert read_quarantined_branch(shown.lake.catalog, branch).properties[EXPIRES] == "2027"


@pytest.mark.parametrize("action", ACTIONS)
async def test_two_clicks_do_it_once(shown: LakeOnPage, action: str) -> None:
    branch = shown.run().quarantined(1)
    page, other = shown.page(), shown.page()
    old = await page.get("/quarantine")
    answers = await asyncio.gather(submit(page, action, old), submit(other, action, old))
    late = await submit(page, action, old)
    if action in ("release", "repair"):
        assert {each.headers["location"] for each in (*answers, late)} == {shown.started[0].path}
        assert len(shown.started) == 1
        return
    assert sorted(each.status for each in answers)[0] == 303 and late.status == CONFLICT
    if action == "discard":
        assert notice(late).startswith(f"Nothing was done: nothing of '{branch}' is quarantined")
        assert not list_quarantined_branches(shown.lake.catalog)
    else:
        history = [each.message for each in shown.lake.catalog.history(branch)]
        assert len([each for each in history if each.startswith("Keep until")]) == 1


async def test_an_old_form_does_not_repeat_a_release_that_has_ended(shown: LakeOnPage) -> None:
    shown.run().quarantined(1)
    page = shown.page()
    old = await page.get("/quarantine")
    await submit(page, "release", old)
    shown.started[0].is_running = False
    for action in ("release", "repair"):
        answer = await submit(page, action, old)
        assert answer.status == CONFLICT and "started and ended since this page was opened" in notice(answer)
    assert len(shown.started) == 1
    assert f'<a href="{shown.started[0].path}">Its last release or repair</a>' in answer.text
    assert (await submit(page, "repair", answer)).headers["location"] == shown.started[1].path


async def test_a_release_under_way_disables_what_it_excludes(shown: LakeOnPage) -> None:
    branch = shown.run().quarantined(1)
    page = shown.page()
    old = await page.get("/quarantine")
    assert all("disabled" not in button(old, action) for action in ACTIONS)
    assert (await shown.command("quarantine", "release", branch, "--detach")).exit_code == 0
    now = await page.get("/quarantine")
    assert {action for action in ACTIONS if "disabled" in button(now, action)} == {"release", "repair", "discard"}
    (started,) = shown.started
    assert f"{started.workflow_id} releases or repairs it now." in now.text
    repaired = await submit(page, "repair", old)
    assert repaired.status == CONFLICT and "it repairs other rows, or in another way" in notice(repaired)
    discarded = await submit(page, "discard", old)
    assert discarded.status == CONFLICT and f"while {started.workflow_id} releases it" in notice(discarded)
    assert (await submit(page, "release", old)).headers["location"] == started.path
    assert len(shown.started) == 1 and list_quarantined_branches(shown.lake.catalog)


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("DELETE FROM t.x", ["DELETE FROM t.x"]),
        (
            " UPDATE t.x SET name = 'a;b' WHERE id = 1; -- a; b\n\n;DELETE FROM t.x WHERE id = 2 ;\n",
            ["UPDATE t.x SET name = 'a;b' WHERE id = 1", "DELETE FROM t.x WHERE id = 2"],
        ),
    ],
)
async def test_statements_are_separated_by_semicolons(shown: LakeOnPage, sql: str, statements: list[str]) -> None:
    shown.run().quarantined(1)
    page = shown.page()
    assert (await submit(page, "repair", await page.get("/quarantine"), sql=sql)).status == 303
    resume = shown.started[0].request.resume
    assert resume and [each.strip() for each in resume.statements] == statements


@pytest.mark.parametrize(
    ("action", "typed", "why"),
    [
        ("repair", {"sql": "DROP TABLE t.x"}, "DROP"),
        ("repair", {"sql": "DELETE FROM t.x; SELECT 1"}, "SELECT"),
        ("repair", {"sql": "DELETE FROM t.x WHERE name = '<b>"}, "is not SQL"),
        ("repair", {"sql": " ; -- nothing"}, "a repair needs a statement"),
        ("keep", {"how_long": "soon"}, "'soon' is not a duration: write 90s, 15m, 24h or 14d"),
        ("keep", {"how_long": "-1d"}, "is not a duration"),
    ],
)
async def test_what_was_typed_is_refused_and_kept(
    shown: LakeOnPage, action: str, typed: dict[str, str], why: str
) -> None:
    shown.run().quarantined(1)
    page = shown.page()
    answer = await submit(page, action, await page.get("/quarantine"), **typed)
    assert answer.status == CONFLICT and notice(answer).startswith("Nothing was done: ") and why in notice(answer)
    assert not shown.started and not shown.client.managed and "<b>" not in answer.text
    if action == "repair":
        kept = re.findall(r"<textarea[^>]*>(.*?)</textarea>", answer.text, re.S)
        assert [html.unescape(each) for each in kept] == [typed["sql"]]


async def test_rows_that_main_has_are_not_released(shown: LakeOnPage) -> None:
    run = shown.run()
    run.quarantined(1)
    page = shown.page()
    old = await page.get("/quarantine")
    resumed = PlanReleaseInput(run=run.run_id)
    plan = shown.client.answers["plan_release"](resumed).resume
    again = shown.run()
    brought = again.resume(plan)
    assert again.publish(brought.branch, brought.write_result, resume=plan).merged
    answer = await submit(page, "release", old)
    assert answer.status == CONFLICT and "were published by" in notice(answer) and not shown.started


async def test_no_worker_answers(shown: LakeOnPage) -> None:
    shown.run().quarantined(1)
    page = shown.page()
    old = await page.get("/quarantine")

    def nobody(_: object) -> None:
        raise ServiceUnavailable("no worker takes work")

    shown.client.answers["plan_release"] = shown.client.answers["ManageQuarantine"] = nobody
    for action in ACTIONS:
        answer = await submit(page, action, old)
        assert answer.status == 503 and "no worker takes work" in answer.text
    assert not shown.started


# Why a button is disabled


def quarantine(**fields: object) -> QuarantineSummary:
    given = {
        **{"branch": "quarantine/p/2026-01-31/r", "run_id": "r", "workflow_id": "p-r", "pipeline": "p"},
        **{"cause": "audit", "reason": "bad rows", "expires": "2100-01-01", "installation": HERE, "verified": True},
    }
    return QuarantineSummary.model_validate({**given, **fields})


@pytest.mark.parametrize(
    ("fields", "released", "kept", "discarded"),
    [
        ({}, "", "", ""),
        ({"verified": False}, "its run ended before the write was verified", "", ""),
        ({"target": "backfill/p"}, "begin it again by `backfill retry p`", "", ""),
        ({"problem": "its last commit lacks x"}, "its last commit lacks x", "", ""),
        ({"installation": "other"}, "belongs to the installation 'other'", "'other'", "'other'"),
    ],
)
def test_the_reason_of_each_disabled_button(
    fields: dict[str, object], released: str, kept: str, discarded: str
) -> None:
    view = view_quarantine(quarantine(**fields), None, HERE)
    for reason, words in ((view.not_released, released), (view.not_kept, kept), (view.not_discarded, discarded)):
        assert words in reason and bool(words) == bool(reason)
    ended = view_quarantine(quarantine(), LatestStart("p-1", "r1", is_running=False), HERE)
    assert not (ended.not_released or ended.not_discarded)
    assert ("to release" in view.commands) == (not released)


async def test_disabled_buttons_say_why_on_the_page(shown: LakeOnPage) -> None:
    shown.run().quarantined(1, installation="other")
    page = shown.page()
    answer = await page.get("/quarantine")
    assert all("disabled" in button(answer, action) for action in ACTIONS)
    assert "It belongs to the installation &#39;other&#39;." in answer.text
    before = state(shown.lake)
    for action in ACTIONS:
        refused = await submit(page, action, answer)
        assert refused.status == CONFLICT and "belongs to the installation 'other'" in notice(refused)
    assert (state(shown.lake), shown.started) == (before, [])
