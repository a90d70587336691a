"""A quarantine, as one person sees it: what may be done with it, and why not."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.presentation.next_steps import quarantine_commands
from sluice.publishing.release import release_refusal, release_workflow_id
from web.page import Page
from web.run.starting import LatestStart, latest_start

_AT_ONCE = 8
"""Maximum number of quarantines whose latest release is read at the same time."""


@dataclass(frozen=True)
class QuarantineView:
    """A quarantined branch, and what may be done with it."""

    quarantine: QuarantineSummary
    latest: LatestStart | None
    """Its latest release or repair, if Temporal still has it."""
    not_released: str
    """Reason why it cannot be released or repaired; empty if it can."""
    not_kept: str
    """Reason why its end cannot be changed; empty if it can."""
    not_discarded: str
    """Reason why it cannot be discarded; empty if it can."""
    commands: dict[str, str]
    """The same as commands, by purpose."""
    typed: str = ""
    """SQL that a person typed and that was refused."""


async def view_quarantines(
    page: Page, quarantines: Sequence[QuarantineSummary], typed: Mapping[str, str]
) -> list[QuarantineView]:
    """Return quarantines as the page shows them.

    Args:
        typed: SQL that was refused, by branch.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def view(each: QuarantineSummary) -> QuarantineView:
        async with room:
            latest = await _latest_release(page, each)
        return view_quarantine(each, latest, page.installation.sluice_installation, typed.get(each.branch, ""))

    return list(await asyncio.gather(*(view(each) for each in quarantines)))


def view_quarantine(
    quarantine: QuarantineSummary, latest: LatestStart | None, installation: str, typed: str = ""
) -> QuarantineView:
    """Return one quarantine as the page shows it.

    Args:
        latest: its latest release or repair.
        installation: the installation of the page.
    """
    released = f"{latest.workflow_id} releases or repairs it now." if latest and latest.is_running else ""
    is_foreign = quarantine.installation != installation
    foreign = f"It belongs to the installation {quarantine.installation!r}." if is_foreign else ""
    refusal = release_refusal(quarantine, installation)
    return QuarantineView(
        quarantine=quarantine,
        latest=latest,
        not_released=refusal or released,
        not_kept=foreign,
        not_discarded=foreign or released,
        commands=quarantine_commands(quarantine.run_id or quarantine.branch, may_release=not refusal),
        typed=typed,
    )


async def _latest_release(page: Page, quarantine: QuarantineSummary) -> LatestStart | None:
    if not (quarantine.pipeline and quarantine.quarantined_hash):
        return None
    workflow_id = release_workflow_id(quarantine.pipeline, quarantine.branch, quarantine.quarantined_hash)
    return await latest_start(page, workflow_id)
