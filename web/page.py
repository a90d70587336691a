"""State that the views of the page share: the connection to Temporal, the person of the request, cached values."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from temporalio.client import Client

from runtime.run.starter import Starter, starter_here
from sluice.setting_groups import InstallationSettings
from sluice.settings import Settings
from web.access import STRANGER, Visitor
from web.actions import action_refusal, visitor_of
from web.attention import AttentionReader
from web.audit.history import VerdictHistory
from web.run.board import Board
from web.run.run_view import RunViews
from web.session import Session
from web.templates import render
from web.timing import TIMING, PageTiming

NAVIGATION = {
    "Home": "/",
    "Runs": "/runs",
    "Tables": "/tables",
    "Quarantine": "/quarantine",
    "Arrivals": "/arrivals",
    "Backfills": "/backfills",
    "Schedules": "/schedules",
    "Pipelines": "/pipelines",
}


@dataclass(frozen=True)
class Page:
    """The state of one server of the page, for the person of one request."""

    client: Client
    settings: Settings
    """Settings with the id of the reached installation."""
    session: Session
    board: Board
    views: RunViews
    attention: AttentionReader
    history: VerdictHistory
    has_proxy: bool = False
    """True if a proxy names the person of each request."""
    visitor: Visitor = STRANGER
    """The person of the request."""
    timing: PageTiming = TIMING

    @property
    def installation(self) -> InstallationSettings:
        """Settings of the installation."""
        return self.settings.installation

    def render(self, template: str, here: str, status: int = 200, /, **values: object) -> HTMLResponse:
        """Return a page.

        Args:
            here: entry of the navigation that the page belongs to.
        """
        shared = {
            "visitor": self.visitor,
            "form_token": self.session.form_token(self.visitor.name),
            "navigation": NAVIGATION,
            "forbidden": partial(action_refusal, self.visitor),
        }
        return render(template, status, here=here, **shared, **values)

    def starter(self) -> Starter:
        """Return the person of the request as the starter of a run. Only the owner of the page is on this machine."""
        return Starter(self.visitor.name, Path.cwd()) if self.has_proxy else starter_here(self.visitor.name)

    def web_ui(self, workflow_id: str, run_id: str) -> str:
        """Return the address of a run in the Temporal Web UI."""
        address = self.installation.temporal_ui
        return f"{address}/namespaces/{self.client.namespace}/workflows/{workflow_id}/{run_id}"


def page_of(request: Request) -> Page:
    """Return the page for the person of a request."""
    page: Page = request.app.state.page
    return replace(page, visitor=visitor_of(request))


ThePage = Annotated[Page, Depends(page_of)]
"""The page, as a parameter of a view."""
