"""Making the branch of an attempt, and its first commit."""

from collections.abc import Callable
from typing import Any

from activities.errors import overdue
from lakehouse.nessie.catalog import NessieCatalog, NoSuchBranch
from lakehouse.nessie.mainline import Mainline
from lakehouse.nessie.operations import no_change_operation
from sluice.contracts.activity_inputs import RunRef
from sluice.errors import ServiceUnavailable
from sluice.publishing.certificate import branch_properties


class AttemptBranch:
    """Needs the catalog, whose runs these are, and the branch's name; looks once whether the branch is there."""

    def __init__(self, catalog: NessieCatalog, mainline: Mainline, installation: str, name: str) -> None:
        self._catalog, self._realm, self._name = catalog, installation, name
        self._head = catalog.find(name)
        self.base = mainline.fork_point(name) if self._head else catalog.initialize_main()
        """Where it began, or, if no earlier try made it, where it begins now."""

    @property
    def has_begun(self) -> bool:
        """Whether an earlier try made the branch and its first commit, and its answer was lost."""
        return self._head not in (None, self.base)

    def begin(self, run_ref: RunRef, message: str, changes: Callable[[], list[dict[str, Any]]]) -> None:
        """Make the branch at its base, if it is not there, and its first commit, which says whose it is.

        Raises:
            ServiceUnavailable: this try was given up long ago, and the run may have ended without it.
        """
        if self.has_begun:
            return
        if self._head is None:
            self._catalog.create_branch(self._name, self.base)
            if overdue():
                self._catalog.delete_unused(self._name, self.base)
                raise ServiceUnavailable(f"{self._name} was made too late")
        try:
            said = branch_properties(run_ref, self._realm)
            self._catalog.commit(self._name, self.base, message, [no_change_operation(), *changes()], said)
        except NoSuchBranch as error:
            raise ServiceUnavailable(f"{self._name} was deleted by an earlier try that came too late") from error
