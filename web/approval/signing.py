"""The signature that a decision needs, and the commands that sign without this page."""

import shlex
from dataclasses import dataclass

from sluice.approval.waivers import waive_options
from sluice.command_line import COMMAND
from sluice.contracts.run import RunResult
from web.approval.waiting import AwaitedView
from web.page import Page

_KEY = "SLUICE_APPROVAL_KEY_FILE=~/.sluice-key"
"""The setting of the command that signs, with the file that docs/approvals.md uses."""


@dataclass(frozen=True)
class SigningView:
    """The signature that a decision needs, because approvers have keys."""

    by_page: bool
    """True if the page has a key file, and signs for its owner as the command does."""
    commands: tuple[str, str]
    """The commands that approve and reject exactly what the page shows."""


def view_signing(page: Page, result: RunResult, awaited: AwaitedView | None) -> SigningView | None:
    """Return the signature that a decision needs, or None if it needs none."""
    if awaited is None or not (result.approval and result.approval.signed):
        return None
    shared = f"{result.workflow_id} --hash {awaited.report} --by {shlex.quote(page.visitor.name)}"
    to_waive = result.approval.to_waive
    waived = f" {waive_options(to_waive)} --reason REASON --until DATE" if to_waive else ""
    return SigningView(
        by_page=bool(page.settings.approval.sluice_approval_key_file),
        commands=(
            f"{_KEY} {COMMAND} approve {shared}{waived}",
            f"{_KEY} {COMMAND} reject {shared} --reason REASON",
        ),
    )
