"""The page of a roll-back: what it will do, and the form that starts it.

The form names the head of main and the plan that it was shown with.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from fastapi.responses import HTMLResponse, Response

from runtime.publishing.publish_plan import plan_publish
from runtime.publishing.rollback_plan import PlannedRollback, plan_rollback
from runtime.run.start_run import workflow_id_of
from sluice.contracts.rollback import PlanRollbackInput
from sluice.errors import BadEnvironment, InvalidPipeline, Terminal
from sluice.presentation.changes import describe_guarantee
from web.form import CONFLICT, answer_form, form_router
from web.page import Page, ThePage
from web.run.starting import LatestStart, latest_start, start_shown
from web.run.views import known_run

router = APIRouter(include_in_schema=False)
forms = form_router()
_SHOWN = re.compile(r"(?P<main>[^:\s]{1,100}):(?P<digest>[0-9a-f]{12})")
_DIGITS = 12
"""Number of digits of a plan's digest in a form."""


@dataclass(frozen=True)
class RollbackOptions:
    """Options of a roll-back, as those of the command."""

    with_later: bool = False
    despite_readers: bool = False
    allow_partial: bool = False


def _options_of_form(
    with_later: Annotated[bool, Form()] = False,
    despite_readers: Annotated[bool, Form()] = False,
    allow_partial: Annotated[bool, Form()] = False,
) -> RollbackOptions:
    return RollbackOptions(with_later, despite_readers, allow_partial)


@dataclass(frozen=True)
class RollbackView:
    """A roll-back before its start."""

    planned: PlannedRollback
    guarantee: str
    shown: str
    """Head of main, and digest of the plan: the form starts this roll-back only."""
    latest: LatestStart | None
    """The latest run that did the same from the same main."""

    @property
    def refused(self) -> str:
        """Reason why it cannot be started; empty if it can."""
        return f"{self.latest.workflow_id} rolls it back now." if self.latest and self.latest.is_running else ""


@router.get("/runs/{workflow_id}/{run_id}/rollback")
async def rollback(
    page: ThePage, workflow_id: str, run_id: str, options: Annotated[RollbackOptions, Depends()]
) -> HTMLResponse:
    """Show what the roll-back of a run will do."""
    await known_run(page, workflow_id, run_id)
    return await _show(page, workflow_id, run_id, options)


@forms.post("/runs/{workflow_id}/{run_id}/rollback")
async def roll_back(
    page: ThePage,
    workflow_id: str,
    run_id: str,
    options: Annotated[RollbackOptions, Depends(_options_of_form)],
    plan: Annotated[str, Form()] = "",
    latest: Annotated[str, Form()] = "",
) -> Response:
    """Start the roll-back that the form was shown with."""
    await known_run(page, workflow_id, run_id)

    async def start() -> str:
        planned = _as_shown(await _plan(page, run_id, options), plan)
        return await start_shown(page, planned.pipeline, None, planned.options, latest)

    return await answer_form(
        start(),
        lambda notice: _show(page, workflow_id, run_id, options, CONFLICT, notice),
        "Nothing was rolled back",
    )


async def _show(
    page: Page, workflow_id: str, run_id: str, options: RollbackOptions, status: int = 200, notice: str = ""
) -> HTMLResponse:
    view, refused = None, ""
    try:
        view = await _view(page, await _plan(page, run_id, options))
    except BadEnvironment:
        raise
    except Terminal as error:
        refused = str(error)
    return page.render(
        "rollback.html",
        "Runs",
        status,
        workflow_id=workflow_id,
        run_id=run_id,
        view=view,
        refused=refused or (view.refused if view else ""),
        options=options,
        notice=notice,
    )


async def _plan(page: Page, run_id: str, options: RollbackOptions) -> PlannedRollback:
    query = PlanRollbackInput(run=run_id, with_later=options.with_later, despite_readers=options.despite_readers)
    return await plan_rollback(page.client, page.installation, query, allow_partial=options.allow_partial)


async def _view(page: Page, planned: PlannedRollback) -> RollbackView:
    publish = await plan_publish(page.client, page.installation, planned.pipeline)
    return RollbackView(
        planned=planned,
        guarantee=describe_guarantee(publish.guarantee),
        shown=f"{planned.plan.restore.main_head}:{_digest(planned)}",
        latest=await latest_start(page, workflow_id_of(planned.pipeline, None, planned.options)),
    )


def _as_shown(planned: PlannedRollback, shown: str) -> PlannedRollback:
    """Return the roll-back that a form was shown with, if it would still do the same.

    Main may have got other tables since. The run itself verifies that its tables did not change since the shown head,
    and a form that is sent twice starts one run.

    Raises:
        InvalidPipeline: the roll-back would do something else now.
    """
    named = _SHOWN.fullmatch(shown)
    if named is None:
        raise InvalidPipeline("this form shows no roll-back. Reload the page")
    if named["digest"] != _digest(planned):
        old, new = named["main"][:7], planned.plan.restore.main_head[:7]
        raise InvalidPipeline(
            f"main changed since this page was opened: {old} is now {new}, and the roll-back would do something else. "
            "Reload the page"
        )
    return planned.with_main_head(named["main"])


def _digest(planned: PlannedRollback) -> str:
    """Return the digest of everything that a person sees of a roll-back, except the head of main."""
    shown = planned.with_main_head("")
    text = shown.plan.model_dump_json() + shown.pipeline.model_dump_json()
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
