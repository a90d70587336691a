"""Making the branch of an attempt, and its first commit."""

from collections.abc import Callable
from typing import Any

from activities.errors import overdue
from lakehouse.nessie.catalog import Catalogue, NoSuchBranch
from lakehouse.nessie.mainline import Mainline
from lakehouse.nessie.operations import mark
from sluice.contracts.activity_inputs import Origin
from sluice.errors import ServiceUnavailable
from sluice.publishing.certificate import branch_properties


class AttemptBranch:
    """Needs the catalogue, whose runs these are, and the branch's name; looks once whether the branch is there."""

    def __init__(self, catalogue: Catalogue, mainline: Mainline, realm: str, name: str) -> None:
        self._catalogue, self._realm, self._name = catalogue, realm, name
        self._head = catalogue.find(name)
        self.base = mainline.fork_point(name) if self._head else catalogue.main_head()
        """Where it began, or, if no earlier try made it, where it begins now."""

    @property
    def has_begun(self) -> bool:
        """Whether an earlier try made the branch and its first commit, and its answer was lost."""
        return self._head not in (None, self.base)

    def begin(self, origin: Origin, message: str, changes: Callable[[], list[dict[str, Any]]]) -> None:
        """Make the branch at its base, if it is not there, and its first commit, which says whose it is.

        Raises:
            ServiceUnavailable: this try was given up long ago, and the run may have ended without it.
        """
        if self.has_begun:
            return
        if self._head is None:
            self._catalogue.create_branch(self._name, self.base)
            if overdue():
                self._catalogue.delete_unused(self._name, self.base)
                raise ServiceUnavailable(f"{self._name} was made too late")
        try:
            said = branch_properties(origin, self._realm)
            self._catalogue.commit(self._name, self.base, message, [mark(), *changes()], said)
        except NoSuchBranch as error:
            raise ServiceUnavailable(f"{self._name} was deleted by an earlier try that came too late") from error
