"""Roles on the page: which role each action needs, on its route and on its button."""

import json
from types import SimpleNamespace

import pytest
from fastapi import APIRouter

from sluice.roles import Role
from tests.harness.asgi import Answer, Browser
from tests.harness.lake_on_page import LakeOnPage, button
from tests.harness.page import behind_proxy, session
from tests.harness.quarantined_run import HERE
from web import app
from web.access import READING
from web.actions import ACTIONS, WITHOUT_ROLE

NOBODY = SimpleNamespace(namespace="default")
"""A client of Temporal that answers nothing: a request that reaches it was permitted."""
PEOPLE = {"vera": Role.VIEWER, "ana": Role.APPROVER, "otto": Role.OPERATOR}
FORM = "application/x-www-form-urlencoded"
OF_APPROVERS = {
    "/runs/{workflow_id}/{run_id}/decision",
    "/runs/{workflow_id}/{run_id}/statement",
    "/api/runs/{name}/decision",
    "/api/runs/{name}/statement",
}


def test_every_route_that_changes_something_has_a_role() -> None:
    """A new route without a role fails here, and is refused on the page."""
    changing = {route.path for route in app.all_routes() if (route.methods or set()) - {*READING}}
    assert changing == {*ACTIONS, *WITHOUT_ROLE}
    assert {path for path, action in ACTIONS.items() if action.needs is Role.APPROVER} == OF_APPROVERS
    assert {action.needs for action in ACTIONS.values()} == {Role.APPROVER, Role.OPERATOR}


async def test_a_route_without_a_role_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    router, done = APIRouter(), []

    @router.post("/new")
    async def change() -> None:
        done.append(True)

    monkeypatch.setattr(app, "_ROUTERS", (router,))
    assert (await behind_proxy(NOBODY, "otto").post_form("/new", {})).status == 500 and not done
    with pytest.raises(AssertionError):
        test_every_route_that_changes_something_has_a_role()


async def send(page: Browser, path: str, person: str) -> Answer:
    address = path.format(workflow_id="p-0123456789ab", run_id="r", name="p")
    if path.startswith("/api/"):
        return await page.post_json(address, {"decision": "approve", "report": "x"})
    return await page.post_form(address, {"form_token": session().form_token(person)})


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("path", ACTIONS)
async def test_an_action_needs_its_role(path: str, person: str) -> None:
    answer = await send(behind_proxy(NOBODY, person), path, person)
    role, action = PEOPLE[person], ACTIONS[path]
    assert (answer.status == 403) == (role < action.needs), answer.text
    if answer.status == 403:
        text = answer.json["error"] if path.startswith("/api/") else answer.text
        assert f"To {action.what}, you need the role " in text and f"and you have the role {role.word}." in text
        assert "The administrator of this page gives roles, in SLUICE_PAGE_ROLES." in text


@pytest.mark.parametrize("path", ACTIONS)
async def test_the_role_comes_before_the_content(path: str) -> None:
    """A person who may not do it learns nothing from what is wrong with the request."""
    address = path.format(workflow_id="p", run_id="r", name="p")
    for body, kind in ((b"", FORM), (json.dumps({"decision": "maybe"}).encode(), "application/json")):
        answer = await behind_proxy(NOBODY, "vera").send("POST", address, body, {"content-type": kind})
        assert answer.status == 403 and "you need the role" in answer.text, answer.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_no_other_method_changes_anything(method: str) -> None:
    for path in ACTIONS:
        answer = await behind_proxy(NOBODY).send(method, path.format(workflow_id="p", run_id="r", name="p"))
        assert answer.status == 405


async def test_the_form_of_another_person_is_refused() -> None:
    """Each person sees the own token in the page, and could send it in a form of another site."""
    page = behind_proxy(NOBODY, "otto")
    for other in ("ana", "owner", "OTTO", ""):
        answer = await page.post_form("/quarantine/discard", {"form_token": session().form_token(other)})
        assert answer.status == 403 and "This form is not from this page" in answer.text


@pytest.mark.parametrize("person", PEOPLE)
async def test_buttons_are_disabled_with_the_reason(shown: LakeOnPage, person: str) -> None:
    shown.run().quarantined(1)
    page = behind_proxy(shown.client, person, installation=HERE)
    answer = await page.get("/quarantine")
    for action in ("release", "repair", "keep", "discard"):
        assert ("disabled" in button(answer, action)) == (person != "otto")
        what = ACTIONS[f"/quarantine/{action}"].what
        assert (f"To {what}, you need the role operator" in answer.text) == (person != "otto")
    shown_name = {"vera": "vera (viewer)", "ana": "ana (approver)", "otto": ">otto<"}[person]
    assert shown_name in answer.text


async def test_an_action_has_the_name_of_its_person(shown: LakeOnPage) -> None:
    shown.run().quarantined(1)
    page = behind_proxy(shown.client, "otto", installation=HERE)
    token = {"form_token": session().form_token("otto")}
    (quarantined,) = shown.quarantined()
    given = {**token, "branch": quarantined.branch, "head": quarantined.head}
    assert (await page.post_form("/quarantine/release", {**given})).status == 303
    assert [each.request.starter for each in shown.started] == ["otto"], "otto is not on the machine of the page"
    shown.started[0].is_running = False
    assert (await page.post_form("/quarantine/discard", {**given})).status == 303
    assert [(each.action, each.by) for each in shown.client.managed] == [("discard", "otto")]
