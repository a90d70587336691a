"""Making the branch of an attempt, and its first commit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from activities.failures import overdue
from lakehouse.mainline import Mainline
from lakehouse.nessie import Catalogue, NoSuchBranch
from lakehouse.operations import mark
from sluice.certificate import branch_properties
from sluice.errors import ServiceUnavailable
from sluice.orders import Origin


@dataclass(frozen=True)
class AttemptBranch:
    """Needs the catalogue, and whose runs these are."""

    catalogue: Catalogue
    mainline: Mainline
    realm: str

    def base(self, name: str) -> str:
        """Return where a branch began, or, if an earlier try did not make it, where it would begin now."""
        return self.mainline.fork_point(name) if self.catalogue.exists(name) else self.catalogue.main_head()

    def has_begun(self, name: str, base: str) -> bool:
        """Return whether an earlier try made the branch and its first commit, and its answer was lost."""
        return self.catalogue.exists(name) and self.catalogue.head(name) != base

    def begin(self, origin: Origin, base: str, message: str, changes: Callable[[], list[dict[str, Any]]]) -> None:
        """Make the branch at `base`, if it is not there, and its first commit, which says whose it is.

        Raises:
            ServiceUnavailable: this try was given up long ago, and the run may have ended without it.
        """
        name = origin.branch
        if not self.catalogue.exists(name):
            self.catalogue.create_branch(name, base)
            if overdue():
                self.catalogue.delete_unused(name, base)
                raise ServiceUnavailable(f"{name} was made too late")
        if self.catalogue.head(name) == base:
            try:
                said = branch_properties(origin, self.realm)
                self.catalogue.commit(name, base, message, [mark(), *changes()], said)
            except NoSuchBranch as error:
                raise ServiceUnavailable(f"{name} was deleted by an earlier try that came too late") from error
