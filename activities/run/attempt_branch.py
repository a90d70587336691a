"""Create the branch of an attempt, and its first commit."""

import time
from collections.abc import Collection, Mapping, Sequence

from activities.errors import overdue
from lakehouse.catalog import BranchCatalog, TableCommit
from sluice.contracts.references import BranchRef, RunRef
from sluice.errors import NoSuchBranch, ServiceUnavailable
from sluice.publishing.branch_properties import branch_properties
from sluice.publishing.capabilities import guarantee_for

_TASK_TIMEOUT = 8
"""Maximum age of a request to create a branch, in seconds.

Temporal gives a workflow task that takes ten seconds to another worker. If the clocks differ, the local activity fails,
and an activity follows.
"""
_DELETED = "{} was deleted by an earlier try that came too late"
"""Message of a retryable error: nothing was committed to the branch."""


class AttemptBranch:
    """The branch of an attempt. Its state is read once, at the start, because an earlier try may have created it."""

    def __init__(self, catalog: BranchCatalog, installation: str, name: str, requested_at: float = 0.0) -> None:
        self._catalog, self._installation, self._name = catalog, installation, name
        self._requested_at = requested_at
        self._head = catalog.find_head(name)
        self.base: str
        """The hash of main that the branch starts from, whether an earlier try created it or this one does."""
        try:
            self.base = catalog.fork_point(name) if self._head else catalog.initialize_main()
        except NoSuchBranch as error:
            raise ServiceUnavailable(_DELETED.format(name)) from error

    @property
    def is_created(self) -> bool:
        """True if an earlier try, whose answer was lost, created the branch and its first commit."""
        return self._head not in (None, self.base)

    def create(
        self,
        run_ref: RunRef,
        message: str,
        tables: Sequence[TableCommit] = (),
        create_namespaces_for: Collection[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create the branch at its base, if it does not exist, and its first commit, which names the run.

        Args:
            properties: further properties of the first commit.

        Raises:
            ServiceUnavailable: Temporal gave up this try meanwhile, and the run may have ended without it.
        """
        if self.is_created:
            return
        if self._head is None:
            if self._requested_at and time.time() - self._requested_at > _TASK_TIMEOUT:
                raise ServiceUnavailable(f"{self._name} was requested too long ago: another worker may have the run")
            self._catalog.create_branch(self._name, self.base)
            if overdue():
                self._catalog.delete_branch_at(self._name, self.base)
                raise ServiceUnavailable(f"{self._name} was created too late")
        described = {**(properties or {}), **branch_properties(run_ref, self._installation)}
        try:
            self._catalog.commit_tables(self._name, self.base, message, tables, described, create_namespaces_for)
        except NoSuchBranch as error:
            raise ServiceUnavailable(_DELETED.format(self._name)) from error

    def ref(self, catalog_id: str, sorted_tables: Sequence[str] = (), *, tables: Collection[str]) -> BranchRef:
        """Return the reference to the branch for later activities of the attempt.

        Args:
            tables: the tables that the run may change.
        """
        return BranchRef(
            name=self._name,
            base=self.base,
            catalog_id=catalog_id,
            sorted_tables=list(sorted_tables),
            commit_timeout=self._catalog.capabilities.commit_timeout,
            guarantee=guarantee_for(self._catalog.capabilities, tables),
            can_be_fenced=self._catalog.capabilities.fencing_by_deletion,
        )
