"""State that the views of the page share: the connection to Temporal, the session, and cached values."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from temporalio.client import Client

from sluice.setting_groups import InstallationSettings
from sluice.settings import Settings
from web.attention import AttentionReader
from web.audit.history import VerdictHistory
from web.run.board import Board
from web.run.run_view import RunViews
from web.session import Session
from web.templates import render

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
    """The state of one server of the page."""

    client: Client
    settings: Settings
    """Settings with the id of the reached installation."""
    session: Session
    board: Board
    views: RunViews
    attention: AttentionReader
    history: VerdictHistory

    @property
    def installation(self) -> InstallationSettings:
        """Settings of the installation."""
        return self.settings.installation

    def render(self, template: str, here: str, status: int = 200, /, **values: object) -> HTMLResponse:
        """Return a page.

        Args:
            here: entry of the navigation that the page belongs to.
        """
        shared = {"person": self.session.person, "form_token": self.session.form_token, "navigation": NAVIGATION}
        return render(template, status, here=here, **shared, **values)

    def web_ui(self, workflow_id: str, run_id: str) -> str:
        """Return the address of a run in the Temporal Web UI."""
        address = self.installation.temporal_ui
        return f"{address}/namespaces/{self.client.namespace}/workflows/{workflow_id}/{run_id}"


def _page_of(request: Request) -> Page:
    page: Page = request.app.state.page
    return page


ThePage = Annotated[Page, Depends(_page_of)]
"""The page, as a parameter of a view."""
