"""The actions of the page, and the role that each of them needs."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import HTTPException, Request

from sluice.roles import Role, role_refusal
from web.access import READING, STRANGER, Visitor
from web.session import SIGN_IN


@dataclass(frozen=True)
class Action:
    """A request that changes something."""

    needs: Role
    what: str
    """The action as a verb with its object, for messages."""


_RUN = "/runs/{workflow_id}/{run_id}"
ACTIONS: Mapping[str, Action] = {
    f"{_RUN}/decision": Action(Role.APPROVER, "decide about a run"),
    f"{_RUN}/statement": Action(Role.APPROVER, "decide about a run"),
    "/api/runs/{name}/decision": Action(Role.APPROVER, "decide about a run"),
    "/api/runs/{name}/statement": Action(Role.APPROVER, "decide about a run"),
    "/api/pipelines/{name}/runs": Action(Role.OPERATOR, "start a pipeline"),
    "/api/query": Action(Role.OPERATOR, "query tables by SQL"),
    f"{_RUN}/cancel": Action(Role.OPERATOR, "cancel a run"),
    f"{_RUN}/again": Action(Role.OPERATOR, "start a run again"),
    f"{_RUN}/rollback": Action(Role.OPERATOR, "roll a run back"),
    "/quarantine/release": Action(Role.OPERATOR, "release a quarantine"),
    "/quarantine/repair": Action(Role.OPERATOR, "repair a quarantine"),
    "/quarantine/keep": Action(Role.OPERATOR, "change the end of a quarantine"),
    "/quarantine/discard": Action(Role.OPERATOR, "discard a quarantine"),
    "/arrivals/{name}/retry": Action(Role.OPERATOR, "retry a batch"),
    "/arrivals/{name}/split": Action(Role.OPERATOR, "split a batch"),
    "/arrivals/{name}/set-aside": Action(Role.OPERATOR, "set a batch aside"),
}
"""Actions by the path of their route."""
WITHOUT_ROLE = frozenset({SIGN_IN})
"""Paths of routes that change nothing but the session of the browser."""


def action_refusal(visitor: Visitor, path: str) -> str:
    """Return the reason why a person may not send a request that changes something; empty if the person may.

    Args:
        path: path of the route. A path that is not in the table is a defect of the page.
    """
    action = ACTIONS[path]
    return role_refusal(action.needs, visitor.role, action.what)


def visitor_of(request: Request) -> Visitor:
    """Return the person whom the guard has admitted."""
    visitor: Visitor = getattr(request.state, "visitor", STRANGER)
    return visitor


async def check_role(request: Request) -> None:
    """Refuse an action for which the role of the person does not suffice. Every route depends on it."""
    path = request.scope["route"].path
    if request.method in READING or path in WITHOUT_ROLE:
        return
    if why := action_refusal(visitor_of(request), path):
        raise HTTPException(403, why)
