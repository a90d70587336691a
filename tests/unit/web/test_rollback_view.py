"""Roll-backs on the page: what the command shows before it asks is shown, and only what was shown is started."""

import asyncio
import getpass
import html
from dataclasses import replace

import pytest

from sluice.contracts.existing_rows import Restore
from tests.harness.asgi import Answer, Browser
from tests.harness.lake_on_page import LakeOnPage, button, form, notice
from tests.harness.memory_catalog import CAPABILITIES
from tests.harness.quarantined_run import LakeRun

CONFLICT = 409


def path(run: LakeRun, query: str = "") -> str:
    return f"/runs/{run.ref.workflow_id}/{run.run_id}/rollback{query}"


async def submit(page: Browser, run: LakeRun, given: Answer) -> Answer:
    """Send the form as an answer showed it."""
    return await page.post_form(path(run), {**form(given, "/rollback")})


def restored(shown: LakeOnPage) -> Restore:
    """Return what the only started run restores."""
    (started,) = shown.started
    assert started.request.restore
    return started.request.restore


@pytest.fixture
def run(shown: LakeOnPage) -> LakeRun:
    """A published run, after another one of the same table."""
    shown.run().published(1)
    run = shown.run()
    run.published(2, 3)
    return run


async def test_the_plan_of_the_command_is_shown_and_its_run_starts(shown: LakeOnPage) -> None:
    shown.run().published(1)
    before, run = shown.lake.catalog.head("main"), shown.run()
    run.published(2, 3)
    effect = f"as on main at {before[:12]}: restored, 2 rows fewer than before"
    page = shown.page(getpass.getuser())
    plan = await page.get(path(run))
    text = html.unescape(plan.text)
    assert "Rolls back 1 run" in text and effect in text
    assert "Not audited: no checks are known for t.x" in text and "disabled" not in button(plan, "/rollback")
    answer = await submit(page, run, plan)
    (started,) = shown.started
    assert (answer.status, answer.headers["location"]) == (303, started.path)
    assert restored(shown) == Restore(
        runs=[run.run_id], main_head=shown.lake.catalog.head("main"), tables={"t.x": before}
    )
    shown.started.clear()
    done = await shown.command("rollback", run.run_id, "--detach")
    assert done.exit_code == 0, done.output
    (typed,) = shown.started
    assert (typed.request, typed.workflow_id) == (started.request, started.workflow_id)
    for line in ("Not audited:", effect):
        assert line in done.output


async def test_a_table_that_the_run_created_is_dropped(shown: LakeOnPage) -> None:
    run = shown.run()
    run.published(1)
    plan = await shown.page(getpass.getuser()).get(path(run))
    assert "dropped, since main at" in html.unescape(plan.text)


async def test_two_clicks_start_one_run_and_an_old_form_does_not_repeat_it(shown: LakeOnPage, run: LakeRun) -> None:
    page, other = shown.page(), shown.page("ben")
    old, of_other = await page.get(path(run)), await other.get(path(run))
    answers = await asyncio.gather(submit(page, run, old), submit(other, run, of_other))
    assert {each.headers["location"] for each in answers} == {shown.started[0].path} and len(shown.started) == 1
    again = await page.get(path(run))
    assert (
        "disabled" in button(again, "/rollback") and f"{shown.started[0].workflow_id} rolls it back now." in again.text
    )
    shown.started[0].is_running = False
    refused = await submit(page, run, old)
    assert refused.status == CONFLICT and notice(refused).startswith("Nothing was rolled back: ")
    assert "started and ended since this page was opened" in notice(refused) and len(shown.started) == 1
    assert (await submit(page, run, refused)).status == 303


async def test_another_table_of_main_may_change_meanwhile(shown: LakeOnPage, run: LakeRun) -> None:
    """The run itself compares its tables with the head that the person saw, so one form starts one run."""
    page = shown.page()
    old = await page.get(path(run))
    head = shown.lake.catalog.head("main")
    shown.run("t.y").published(7)
    assert (await submit(page, run, old)).status == 303
    assert restored(shown).main_head == head
    shown.run("t.y").published(8)
    assert (await submit(page, run, old)).headers["location"] == shown.started[0].path
    assert len(shown.started) == 1


async def test_nothing_is_rolled_back_if_main_changed_what_was_shown(shown: LakeOnPage, run: LakeRun) -> None:
    page = shown.page()
    first = await page.get(path(run, "?with_later=true"))
    shown.run().published(4)
    for old in (await page.get(path(run)), first):
        answer = await submit(page, run, old)
        assert answer.status == CONFLICT and not shown.started
    then, now = form(first, "/rollback")["plan"][:7], shown.lake.catalog.head("main")[:7]
    assert notice(answer) == (
        f"Nothing was rolled back: main changed since this page was opened: {then} is now {now}, and the roll-back "
        "would do something else. Reload the page."
    )
    assert "Rolls back 2 runs" in answer.text and (await submit(page, run, answer)).status == 303
    assert restored(shown).runs[-1] == run.run_id and len(restored(shown).runs) == 2


@pytest.mark.parametrize("plan", ["", "x", f"{'0' * 64}:{'0' * 12}", f"a b:{'0' * 12}"])
async def test_a_form_that_names_another_plan_starts_nothing(shown: LakeOnPage, run: LakeRun, plan: str) -> None:
    page = shown.page()
    given = {**form(await page.get(path(run)), "/rollback"), "plan": plan}
    answer = await page.post_form(path(run), {**given})
    assert answer.status == CONFLICT and not shown.started


async def test_later_runs_stand_in_the_way_until_they_are_included(shown: LakeOnPage, run: LakeRun) -> None:
    later = shown.run()
    later.published(5)
    page = shown.page()
    plan = await page.get(path(run))
    assert "disabled" in button(plan, "/rollback") and f"later runs built on it: {later.ref.workflow_id}" in plan.text
    assert "To roll them back too, add --with-later" in plan.text and "too (--with-later)" in plan.text
    both = await page.get(path(run, "?with_later=true"))
    assert "Rolls back 2 runs" in both.text and (await submit(page, run, both)).status == 303
    assert restored(shown).runs == [later.run_id, run.run_id]


async def test_readers_are_named_first(shown: LakeOnPage, run: LakeRun) -> None:
    shown.run("t.y").published(6, referenced=["t.x"])
    page = shown.page()
    plan = await page.get(path(run))
    assert "disabled" in button(plan, "/rollback") and "was checked against t.x" in plan.text
    assert (await submit(page, run, plan)).status == CONFLICT and not shown.started
    despite = await page.get(path(run, "?despite_readers=true"))
    assert "<dt>Not rolled back</dt>" in despite.text and (await submit(page, run, despite)).status == 303


async def test_a_run_that_was_rolled_back_already(shown: LakeOnPage, run: LakeRun) -> None:
    page = shown.page()
    old = await page.get(path(run))
    await submit(page, run, old)
    back = shown.run()
    branch = back.open()
    wanted = restored(shown)
    shown.lake.replace_rows(branch.name, "t.x", [{"id": 1}], back.ref)
    assert back.publish(branch, back.verify(branch), restore=wanted).merged
    shown.started[0].is_running = False
    answer = await submit(page, run, old)
    assert answer.status == CONFLICT and f"was rolled back already, by {back.ref.workflow_id}" in notice(answer)
    assert "disabled" in button(answer, "/rollback") and len(shown.started) == 1


async def test_a_catalog_that_publishes_one_by_one(shown: LakeOnPage) -> None:
    both = shown.run("t.x", "t.y")
    both.published(1)
    page = shown.page()
    old = await page.get(path(both))
    assert "<dt>Guarantee</dt>" in old.text
    catalog = shown.lake.catalog
    catalog.capabilities = replace(CAPABILITIES, many_tables=False, guarantee="one by one")  # type: ignore[misc]
    plan = await page.get(path(both))
    assert "disabled" in button(plan, "/rollback") and "cannot publish 2 tables at once" in plan.text
    assert (await submit(page, both, old)).status == CONFLICT and not shown.started
    allowed = await page.get(path(both, "?allow_partial=true"))
    assert "readers may see some tables before the others" in allowed.text
    assert (await submit(page, both, allowed)).status == 303
    assert shown.started[0].request.guarantee == "one by one"


async def test_a_run_that_temporal_does_not_have(shown: LakeOnPage, run: LakeRun) -> None:
    page = shown.page()
    given = form(await page.get(path(run)), "/rollback")
    assert (await page.get("/runs/p-0123456789ab/unknown/rollback")).status == 404
    assert (await page.post_form("/runs/p-0123456789ab/unknown/rollback", {**given})).status == 404
    assert not shown.started
