"""The reaper: deals with branches whose run is gone, and with quarantines whose time is over."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine import create_quarantine, list_quarantined_branches, read_held_tables
from sluice.contracts.activity_inputs import RunRef
from sluice.contracts.quarantine import ReapBranchesInput, ReapBranchesResult
from sluice.errors import NoSuchBranch
from sluice.identifiers import ATTEMPTS, attempt_of, quarantine_branch
from sluice.publishing.certificate import (
    INSTALLATION,
    PIPELINE,
    RUN_ID,
    WORKFLOW_ID,
    quarantine_properties,
)

_KEPT = timedelta(days=14)
"""How long the rows of a run that is gone are kept; its pipeline cannot be asked."""
_PATIENCE = 30


@dataclass(frozen=True)
class ReapBranchesActivity:
    """Needs the catalog, how Iceberg reads the lake, Temporal and its client's loop, and whose runs these are."""

    catalog: BranchCatalog
    io: dict[str, str]
    client: Client
    loop: asyncio.AbstractEventLoop
    installation: str

    @activity.defn(name="reap_branches")
    def reap_branches(self, input: ReapBranchesInput) -> ReapBranchesResult:
        """Look at every branch that is not main's; touch only what says that it is this installation's."""
        with as_application_error():
            now = datetime.now(timezone.utc)
            reaped = self._quarantines(now)
            for branch in self.catalog.list_branches(ATTEMPTS):
                if now - branch.committed_at >= timedelta(seconds=input.grace):
                    self._attempt(reaped, branch.name, now)
            return reaped

    def _quarantines(self, now: datetime) -> ReapBranchesResult:
        expired: list[str] = []
        kept = kept_bytes = freed = 0
        for found in list_quarantined_branches(self.catalog):
            if found.properties.get(INSTALLATION) != self.installation:
                continue
            size = sum(table.bytes for table in read_held_tables(self.catalog, self.io, found))
            if found.expires is None or found.expires > now:
                kept, kept_bytes = kept + 1, kept_bytes + size
                continue
            self.catalog.delete_branch(found.branch)
            expired.append(found.branch)
            freed += size
        return ReapBranchesResult(expired=expired, kept=kept, kept_bytes=kept_bytes, freed_bytes=freed)

    def _attempt(self, reaped: ReapBranchesResult, name: str, now: datetime) -> None:
        try:
            said = self._said(name)
            if said is None:
                reaped.strange.append(name)
            elif said[INSTALLATION] == self.installation and not self._runs(said[WORKFLOW_ID], said[RUN_ID]):
                self._abandoned(reaped, name, said, now)
        except NoSuchBranch:
            return  # somebody was faster

    def _said(self, name: str) -> Mapping[str, str] | None:
        """Return what the newest commit on the branch that says who made it says, or None."""
        fork = self.catalog.fork_point(name)
        for commit in self.catalog.history(name):
            if {RUN_ID, WORKFLOW_ID, PIPELINE, INSTALLATION} <= commit.properties.keys():
                return commit.properties
            if commit.hash == fork:
                break
        return None

    def _runs(self, workflow_id: str, run_id: str) -> bool:
        asking = self.client.get_workflow_handle(workflow_id, run_id=run_id).describe()
        try:
            described = asyncio.run_coroutine_threadsafe(asking, self.loop).result(_PATIENCE)
        except RPCError as error:
            if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                return False
            raise
        return described.status == WorkflowExecutionStatus.RUNNING

    def _abandoned(self, reaped: ReapBranchesResult, name: str, said: Mapping[str, str], now: datetime) -> None:
        attempt = attempt_of(name)
        if attempt is None:
            reaped.strange.append(name)
            return
        if kept := self._kept(name, said, attempt, now):
            reaped.quarantined.append(kept)
            return
        self.catalog.delete_branch(name)
        reaped.deleted.append(name)

    def _kept(self, name: str, said: Mapping[str, str], attempt: int, now: datetime) -> str:
        """Keep what an abandoned attempt holds, if it holds rows that main does not; return the branch's name."""
        head, base = self.catalog.head(name), self.catalog.fork_point(name)
        if not self.catalog.diff(base, name, head) or self.catalog.find_publication(head, ""):
            return ""
        run_ref = RunRef(
            run_id=said[RUN_ID], workflow_id=said[WORKFLOW_ID], pipeline=said[PIPELINE], label="", attempt=attempt
        )
        kept = quarantine_branch(run_ref.pipeline, now.date().isoformat(), f"{run_ref.run_id}-a{attempt}")
        reason = "the run is gone without an end: terminated, or Temporal lost it"
        properties = quarantine_properties(run_ref, base, "error", reason, (now + _KEPT).isoformat())
        create_quarantine(self.catalog, kept, head, name, {**properties, INSTALLATION: self.installation})
        self.catalog.delete_branch(name)
        return kept
