"""The reaper: quarantine or delete orphan branches, whose run has ended, and delete expired quarantines."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice

from temporalio import activity

from activities.run.running_workflows import RunningWorkflows
from lakehouse.catalog import BranchCatalog, BranchInfo
from lakehouse.publishing.published_commits import find_merge_of_run
from lakehouse.quarantine.quarantined_branches import (
    QuarantinedBranch,
    create_quarantine,
    keeps,
    list_quarantined_branches,
    read_quarantined_tables,
)
from sluice.contracts.quarantine import ReapBranchesInput, ReapBranchesResult
from sluice.errors import NoSuchBranch, ServiceUnavailable
from sluice.identifiers import ATTEMPTS, attempt_of
from sluice.publishing.commit_properties import INSTALLATION, NO_PUBLISH, RESUMES, ROLLED_BACK, RUN_ID, WORKFLOW_ID
from sluice.publishing.orphans import is_expired, is_idle, names_its_run, orphan_action, orphan_quarantine
from sluice.redaction import redacted

_log = logging.getLogger("sluice.reaper")
_MAX_FAILURES = 100
"""Maximum number of failures in the result."""
_MAX_MESSAGE = 300
_MAX_UNAVAILABLE = 10
"""Maximum number of branches that may fail because a service does not answer. Then the round ends and is retried."""
_MAX_COMMITS = 10_000
"""Maximum number of commits read to identify the owner of a branch."""


@dataclass
class _Round:
    """The results of one round of the reaper."""

    now: datetime
    result: ReapBranchesResult = field(default_factory=ReapBranchesResult)
    others: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    kept_bytes: int = 0
    freed_bytes: int = 0
    failures: int = 0
    unavailable: int = 0

    def record_failure(self, branch: str, error: Exception) -> None:
        """Log the error of a branch, and add it to the result."""
        _log.warning("%s: %s", branch, error, exc_info=error)
        self.failures += 1
        if len(self.result.failed) < _MAX_FAILURES:
            self.result.failed[branch] = redacted(f"{type(error).__name__}: {error}")[:_MAX_MESSAGE]

    def finish(self) -> ReapBranchesResult:
        """Return the result with its counts."""
        return self.result.model_copy(
            update={
                "kept": self.kept,
                "kept_bytes": self.kept_bytes,
                "freed_bytes": self.freed_bytes,
                "failures": self.failures,
                "other_installations": dict(self.others.most_common(_MAX_FAILURES)),
            }
        )


@dataclass(frozen=True)
class ReapBranchesActivity:
    """The activity `reap_branches`.

    Needs the catalog, Iceberg's FileIO properties for the lake, the lookup of running workflows, and the installation.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    running: RunningWorkflows
    installation: str

    @activity.defn(name="reap_branches")
    def reap_branches(self, input: ReapBranchesInput) -> ReapBranchesResult:
        """Check every quarantine and every attempt's branch; change only those of this installation.

        The reaper reports a branch that cannot be read or has invalid properties, leaves it as it is, and goes on with
        the next. It deletes a branch only at the head that it checked. This makes parallel rounds and changes by people
        safe: the reaper leaves a branch that moved for the next round.
        """
        round = _Round(datetime.now(timezone.utc))
        for quarantined in list_quarantined_branches(self.catalog):
            with self._on_its_own(round, quarantined.branch):
                self._reap_quarantine(round, quarantined)
        for branch in self.catalog.list_branches(ATTEMPTS):
            if is_idle(branch.committed_at, round.now, input.grace):
                with self._on_its_own(round, branch.name):
                    self._reap_attempt(round, branch)
        return round.finish()

    @contextmanager
    def _on_its_own(self, round: _Round, branch: str) -> Iterator[None]:
        """Report an error of one branch, and go on with the next. End the round if a service is unavailable."""
        try:
            yield
        except NoSuchBranch as error:
            if self.catalog.find_head(branch) is not None:  # otherwise somebody deleted it meanwhile
                round.record_failure(branch, error)
        except ServiceUnavailable as error:
            self.catalog.identity()
            round.unavailable += 1
            if round.unavailable >= _MAX_UNAVAILABLE:
                raise
            round.record_failure(branch, error)
        except Exception as error:  # invalid metadata of one branch must not stop the round
            round.record_failure(branch, error)

    def _reap_quarantine(self, round: _Round, branch: QuarantinedBranch) -> None:
        if branch.installation != self.installation:
            round.others[branch.installation] += 1
            return
        size = self._size(round, branch)
        if is_expired(branch.expires, round.now):
            if self.running.release_of(branch):
                round.result.in_use.append(branch.branch)
            elif self._delete_at(branch.branch, branch.head):
                round.result.expired.append(branch.branch)
                round.freed_bytes += size
                return
        round.kept, round.kept_bytes = round.kept + 1, round.kept_bytes + size

    def _size(self, round: _Round, branch: QuarantinedBranch) -> int:
        """Return the size of the data files that only this branch has, in bytes; 0 if its metadata is unreadable."""
        try:
            return sum(table.bytes for table in read_quarantined_tables(self.catalog, self.io, branch))
        except ServiceUnavailable:
            raise
        except Exception as error:  # a quarantine expires even if it cannot be read
            if self.catalog.find_head(branch.branch) is None:
                raise
            round.record_failure(branch.branch, error)
            return 0

    def _reap_attempt(self, round: _Round, branch: BranchInfo) -> None:
        attempt = attempt_of(branch.name)
        owner = self._find_owner(branch) if attempt is not None else None
        if owner is None:
            round.result.unrecognized.append(branch.name)
        elif owner[INSTALLATION] != self.installation:
            round.others[owner[INSTALLATION]] += 1
        elif not self._is_running(owner):
            self._reap_orphan(round, branch, owner)

    def _find_owner(self, branch: BranchInfo) -> Mapping[str, str] | None:
        """Return the properties of the first commit of a branch, which names its run, or None if it names no run.

        Later commits do not count, because a job may commit anything to its branch.
        """
        owner = None
        fork = self.catalog.fork_point(branch.name)
        for commit in islice(self.catalog.history(branch.name), _MAX_COMMITS):
            if commit.hash == fork and branch.head != fork:
                break
            if names_its_run(branch.name, commit.properties):
                owner = commit.properties
                if branch.head == fork:  # main contains the whole branch, so its own commits do not end at the fork
                    break
        return owner

    def _is_running(self, owner: Mapping[str, str]) -> bool:
        """Return True if the run is running under its run id, or under another one after a reset by Temporal."""
        workflow_id = owner[WORKFLOW_ID]
        return self.running.is_running(workflow_id, owner[RUN_ID]) or self.running.is_running(workflow_id)

    def _reap_orphan(self, round: _Round, branch: BranchInfo, owner: Mapping[str, str]) -> None:
        name, head = branch.name, branch.head
        base, attempt = self.catalog.fork_point(name), attempt_of(name)
        changed = self.catalog.diff(base, name, head)
        action = orphan_action(
            attempt,
            changed_tables=len(changed),
            is_published=bool(changed) and self._is_published(owner, head),
            rows_are_kept_already=self._rows_are_kept_already(owner, head),
            keeps_rows=NO_PUBLISH not in owner,
        )
        if action == "quarantine" and self.catalog.head(name) == head:
            quarantine = orphan_quarantine(owner, attempt or 0, base, round.now)
            kept_as = self._free_name(quarantine.name, head)
            create_quarantine(self.catalog, kept_as, head, name, quarantine.properties)
            round.result.quarantined.append(kept_as)
            self._delete_at(name, head)
        elif action == "delete" and self._delete_at(name, head):
            round.result.deleted.append(name)

    def _is_published(self, owner: Mapping[str, str], head: str) -> bool:
        """Return True if main contains the branch, or the write of another attempt of its run."""
        if self.catalog.find_publication(head, "") is not None:
            return True
        return find_merge_of_run(self.catalog, owner[RUN_ID], since="") is not None

    def _rows_are_kept_already(self, owner: Mapping[str, str], head: str) -> bool:
        """Return True if the rows exist elsewhere: the run is a release or a roll-back, or quarantined them itself."""
        if ROLLED_BACK in owner:
            return True
        return any(
            each.branch == owner.get(RESUMES) or each.quarantined_hash == head
            for each in list_quarantined_branches(self.catalog)
        )

    def _free_name(self, name: str, head: str) -> str:
        """Return the name of a quarantine, with a part of the hash appended if the name is used for another hash."""
        present = self.catalog.find_head(name)
        is_free = present in (None, head) or keeps(self.catalog, name, head)
        return name if is_free else f"{name}-{head[:8]}"

    def _delete_at(self, name: str, head: str) -> bool:
        """Delete a branch unless it moved since it was checked; return True if it no longer exists."""
        self.catalog.delete_branch_at(name, head)
        return self.catalog.find_head(name) is None
