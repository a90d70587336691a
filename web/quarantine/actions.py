"""Forms that release, repair, keep and discard a quarantine. Each names the head that it was shown with."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Form
from fastapi.responses import Response

from runtime.quarantine.managing import end_of_retention, find_quarantine, manage_quarantine
from runtime.quarantine.releasing import plan_release, repair_statements
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.quarantine import QuarantineAction
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.errors import InvalidPipeline
from sluice.sql.tokens import MAX_LENGTH, SqlProblem, split_statements
from web.form import CONFLICT, answer_form, form_router
from web.page import Page, ThePage
from web.quarantine.views import NOTHING, show_quarantines
from web.run.starting import start_shown

router = form_router()


@dataclass(frozen=True)
class ShownQuarantine:
    """A quarantine, as a form was shown with it."""

    branch: str
    head: str
    latest: str = ""
    """Run id of its latest release or repair; empty if there was none."""

    def check(self, present: QuarantineSummary) -> None:
        """Check that the quarantine is still the one that the person saw.

        Raises:
            InvalidPipeline: it changed.
        """
        if present.head != self.head:
            raise InvalidPipeline(
                f"the quarantine changed since this page was opened: {self.head[:7]} is now {present.head[:7]}. "
                "Reload the page"
            )


def _shown(
    branch: Annotated[str, Form()], head: Annotated[str, Form()], latest: Annotated[str, Form()] = ""
) -> ShownQuarantine:
    return ShownQuarantine(branch, head, latest)


Shown = Annotated[ShownQuarantine, Depends(_shown)]
Again = Annotated[bool, Form()]


@router.post("/quarantine/release")
async def release(page: ThePage, shown: Shown, again: Again = False) -> Response:
    """Start a run that audits the same rows again and publishes them if they pass."""
    return await _answer(page, _start(page, shown, "", again=again))


@router.post("/quarantine/repair")
async def repair(
    page: ThePage, shown: Shown, sql: Annotated[str, Form(min_length=1, max_length=MAX_LENGTH)], again: Again = False
) -> Response:
    """Start a run that repairs the rows by SQL, audits them again and publishes them if they pass."""
    return await _answer(page, _start(page, shown, sql, again=again), {shown.branch: sql})


@router.post("/quarantine/keep")
async def keep(page: ThePage, shown: Shown, how_long: Annotated[str, Form()]) -> Response:
    """Change the end of its retention."""
    return await _answer(page, _manage(page, shown, "keep", how_long))


@router.post("/quarantine/discard")
async def discard(page: ThePage, shown: Shown) -> Response:
    """Delete it for good."""
    return await _answer(page, _manage(page, shown, "discard"))


async def _answer(page: Page, action: Awaitable[str], typed: Mapping[str, str] = NOTHING) -> Response:
    """Carry out an action, and lead to the address that it returns. If it is refused, show the reason.

    Args:
        typed: SQL that a person typed, by branch.
    """
    return await answer_form(action, lambda notice: show_quarantines(page, CONFLICT, notice, typed), "Nothing was done")


async def _start(page: Page, shown: ShownQuarantine, sql: str, *, again: bool) -> str:
    """Start a release, or a repair by SQL. Return the address of the run."""
    query = PlanReleaseInput(run=shown.branch, statements=_statements(sql) if sql else [], again=again)
    planned = await plan_release(page.client, page.installation, query)
    shown.check(planned.quarantine)
    return await start_shown(
        page, planned.pipeline, planned.run_input, planned.options, shown.latest, planned.plan.tables
    )


async def _manage(page: Page, shown: ShownQuarantine, action: QuarantineAction, how_long: str = "") -> str:
    """Keep it for a duration from now, or discard it. Return the address of the list."""
    try:
        until = end_of_retention(how_long) if action == "keep" else ""
    except ValueError as error:
        raise InvalidPipeline(str(error)) from error
    present = await find_quarantine(page.client, page.installation, shown.branch)
    shown.check(present)
    await manage_quarantine(page.client, page.installation, present, action, page.visitor.name, until)
    page.attention.forget()
    return "/quarantine"


def _statements(sql: str) -> list[str]:
    """Return the statements of a repair.

    Raises:
        InvalidPipeline: there is none, or one is not SQL that changes tables.
    """
    try:
        statements = split_statements(sql)
    except SqlProblem as error:
        raise InvalidPipeline(str(error)) from error
    if not statements:
        raise InvalidPipeline("a repair needs a statement")
    return repair_statements(statements)
