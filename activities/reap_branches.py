"""The reaper: deals with orphan branches, whose run is gone, and with quarantines that expired."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine import create_quarantine, list_quarantined_branches, read_quarantined_tables
from sluice.contracts.quarantine import ReapBranchesInput, ReapBranchesResult
from sluice.errors import NoSuchBranch
from sluice.identifiers import ATTEMPTS, attempt_of
from sluice.publishing.certificate import INSTALLATION, RUN_ID, WORKFLOW_ID
from sluice.publishing.orphans import (
    is_expired,
    is_idle,
    names_its_run,
    orphan_action,
    orphan_quarantine,
)

_TEMPORAL_TIMEOUT = 30
"""How long, in seconds, Temporal may take to describe a run."""


@dataclass(frozen=True)
class ReapBranchesActivity:
    """The activity `reap_branches`.

    Needs the catalog, how Iceberg reads the lake, Temporal and its client's loop, and the installation.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    client: Client
    loop: asyncio.AbstractEventLoop
    installation: str

    @activity.defn(name="reap_branches")
    def reap_branches(self, input: ReapBranchesInput) -> ReapBranchesResult:
        """Look at every quarantine and every attempt's branch; change only what this installation made."""
        with as_application_error():
            now = datetime.now(timezone.utc)
            result = self._reap_quarantines(now)
            for branch in self.catalog.list_branches(ATTEMPTS):
                if is_idle(branch.committed_at, now, input.grace):
                    self._reap_attempt(result, branch.name, now)
            return result

    def _reap_quarantines(self, now: datetime) -> ReapBranchesResult:
        expired: list[str] = []
        kept = kept_bytes = freed = 0
        for branch in list_quarantined_branches(self.catalog):
            if branch.properties.get(INSTALLATION) != self.installation:
                continue
            size = sum(table.bytes for table in read_quarantined_tables(self.catalog, self.io, branch))
            if not is_expired(branch.expires, now):
                kept, kept_bytes = kept + 1, kept_bytes + size
                continue
            self.catalog.delete_branch(branch.branch)
            expired.append(branch.branch)
            freed += size
        return ReapBranchesResult(expired=expired, kept=kept, kept_bytes=kept_bytes, freed_bytes=freed)

    def _reap_attempt(self, result: ReapBranchesResult, name: str, now: datetime) -> None:
        try:
            owner = self._find_owner(name)
            if owner is None:
                result.unrecognized.append(name)
            elif owner[INSTALLATION] == self.installation and not self._is_running(owner):
                self._reap_orphan(result, name, owner, now)
        except NoSuchBranch:
            return  # somebody else deleted it meanwhile

    def _find_owner(self, name: str) -> Mapping[str, str] | None:
        """Return the properties of the branch's newest commit that names its run, or None."""
        fork = self.catalog.fork_point(name)
        for commit in self.catalog.history(name):
            if names_its_run(commit.properties):
                return commit.properties
            if commit.hash == fork:
                break
        return None

    def _is_running(self, owner: Mapping[str, str]) -> bool:
        describe = self.client.get_workflow_handle(owner[WORKFLOW_ID], run_id=owner[RUN_ID]).describe()
        try:
            description = asyncio.run_coroutine_threadsafe(describe, self.loop).result(_TEMPORAL_TIMEOUT)
        except RPCError as error:
            if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                return False
            raise
        return description.status == WorkflowExecutionStatus.RUNNING

    def _reap_orphan(self, result: ReapBranchesResult, name: str, owner: Mapping[str, str], now: datetime) -> None:
        attempt, head, base = attempt_of(name), self.catalog.head(name), self.catalog.fork_point(name)
        changed = self.catalog.diff(base, name, head)
        is_published = bool(changed) and self.catalog.find_publication(head, "") is not None
        action = orphan_action(attempt, changed_tables=len(changed), is_published=is_published)
        if action == "report":
            result.unrecognized.append(name)
            return
        if action == "quarantine":
            quarantine = orphan_quarantine(owner, attempt or 0, base, now)
            create_quarantine(self.catalog, quarantine.name, head, name, quarantine.properties)
            result.quarantined.append(quarantine.name)
        else:
            result.deleted.append(name)
        self.catalog.delete_branch(name)
