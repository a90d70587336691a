"""The reaper: deals with orphan branches, whose run is gone, and with quarantines that expired."""

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
from lakehouse.published_commits import find_merge_of_run
from lakehouse.quarantine import (
    QuarantinedBranch,
    create_quarantine,
    keeps,
    list_quarantined_branches,
    read_quarantined_tables,
)
from sluice.contracts.quarantine import ReapBranchesInput, ReapBranchesResult
from sluice.errors import NoSuchBranch, ServiceUnavailable
from sluice.identifiers import ATTEMPTS, attempt_of
from sluice.publishing.certificate import INSTALLATION, RESUMES, ROLLED_BACK, RUN_ID, WORKFLOW_ID
from sluice.publishing.orphans import is_expired, is_idle, names_its_run, orphan_action, orphan_quarantine
from sluice.redaction import redacted

_log = logging.getLogger("sluice.reaper")
_MAX_FAILURES = 100
"""So many failures are part of the result."""
_MAX_MESSAGE = 300
_MAX_UNAVAILABLE = 10
"""After so many branches for which a service did not answer, the round ends and is tried again."""
_MAX_COMMITS = 10_000
"""So many commits of a branch are read to find out whose it is."""


@dataclass
class _Round:
    """What one round of the reaper did."""

    now: datetime
    result: ReapBranchesResult = field(default_factory=ReapBranchesResult)
    others: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    kept_bytes: int = 0
    freed_bytes: int = 0
    failures: int = 0
    unavailable: int = 0

    def record_failure(self, branch: str, error: Exception) -> None:
        """Log why a branch could not be dealt with, and note it in the result."""
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

    Needs the catalog, how Iceberg reads the lake, which workflows run, and the installation.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    running: RunningWorkflows
    installation: str

    @activity.defn(name="reap_branches")
    def reap_branches(self, input: ReapBranchesInput) -> ReapBranchesResult:
        """Look at every quarantine and every attempt's branch; change only what this installation made.

        Each branch is handled on its own: one that cannot be read, or says nonsense, is reported and left alone. A
        branch is deleted only at the head that was looked at, so that two rounds at once, or a person who changes
        something meanwhile, are no danger: a branch that moved is left for the next round.
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
        """Report an error of one branch, and go on with the next; end the round where a service is away."""
        try:
            yield
        except NoSuchBranch as error:
            if self.catalog.find_head(branch) is not None:  # else somebody deleted it meanwhile
                round.record_failure(branch, error)
        except ServiceUnavailable as error:
            self.catalog.identity()
            round.unavailable += 1
            if round.unavailable >= _MAX_UNAVAILABLE:
                raise
            round.record_failure(branch, error)
        except Exception as error:  # whatever one branch makes of its metadata must not stop the round
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
        """Return the size of the data files that only this branch holds; 0 where its metadata cannot be read."""
        try:
            return sum(table.bytes for table in read_quarantined_tables(self.catalog, self.io, branch))
        except ServiceUnavailable:
            raise
        except Exception as error:  # a quarantine expires, whether it can be read or not
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
        """Return the properties of the branch's first commit, which its run made, or None if that names none.

        Not of a later commit: a job may commit what it likes to its branch.
        """
        owner = None
        fork = self.catalog.fork_point(branch.name)
        for commit in islice(self.catalog.history(branch.name), _MAX_COMMITS):
            if commit.hash == fork and branch.head != fork:
                break
            if names_its_run(branch.name, commit.properties):
                owner = commit.properties
                if branch.head == fork:  # main holds all of it, so that its own commits do not end at the fork
                    break
        return owner

    def _is_running(self, owner: Mapping[str, str]) -> bool:
        """Return whether the run goes on: itself, or under another run id, which it gets when Temporal resets it."""
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
        """Return whether main holds the branch, or what another attempt of its run wrote."""
        if self.catalog.find_publication(head, "") is not None:
            return True
        return find_merge_of_run(self.catalog, owner[RUN_ID], since="") is not None

    def _rows_are_kept_already(self, owner: Mapping[str, str], head: str) -> bool:
        """Return whether the rows are elsewhere: those of a release or a roll-back, or quarantined by the run."""
        if ROLLED_BACK in owner:
            return True
        return any(
            each.branch == owner.get(RESUMES) or each.quarantined_hash == head
            for each in list_quarantined_branches(self.catalog)
        )

    def _free_name(self, name: str, head: str) -> str:
        """Return the name of a quarantine, with a part of the hash if an earlier round used it for another hash."""
        present = self.catalog.find_head(name)
        is_free = present in (None, head) or keeps(self.catalog, name, head)
        return name if is_free else f"{name}-{head[:8]}"

    def _delete_at(self, name: str, head: str) -> bool:
        """Delete a branch unless it moved since it was looked at; return whether it is gone."""
        self.catalog.delete_branch_at(name, head)
        return self.catalog.find_head(name) is None
