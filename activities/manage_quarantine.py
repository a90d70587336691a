"""Do what people order about quarantined branches."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import told_to_temporal
from lakehouse.nessie.catalog import Catalogue
from lakehouse.nessie.operations import mark
from lakehouse.quarantine import Quarantined, find_quarantined
from sluice.contracts.quarantine import HouseOrder
from sluice.errors import InvalidPipeline
from sluice.identifiers import repair_branch
from sluice.publishing.certificate import EXPIRES, REALM


@dataclass(frozen=True)
class KeepHouseActivity:
    """Needs the catalogue, and whose runs these are."""

    catalogue: Catalogue
    realm: str

    @activity.defn(name="keep_house")
    def keep_house(self, order: HouseOrder) -> str:
        """Do what a person ordered; return the branch that is there now, if any."""
        with told_to_temporal():
            if order.action == "discard" and not self.catalogue.exists(order.branch):
                return ""
            found = find_quarantined(self.catalogue, order.branch)
            if found.said.get(REALM) != self.realm:
                raise InvalidPipeline(f"{order.branch} is of another installation, {found.said.get(REALM)!r}")
            if order.action == "discard":
                self.catalogue.delete_branch(repair_branch(found.pipeline, found.run_id))
                self.catalogue.delete_branch(order.branch)
                return ""
            if order.action == "keep":
                self._keep_until(found, order)
                return order.branch
            return self._open(found)

    def _keep_until(self, found: Quarantined, order: HouseOrder) -> None:
        if found.said.get(EXPIRES) != order.until:
            said = {**found.said, EXPIRES: order.until}
            message = f"Keep until {order.until[:10]}, says {order.by}"
            self.catalogue.commit(found.branch, found.head, message, [mark()], said)

    def _open(self, found: Quarantined) -> str:
        name = repair_branch(found.pipeline, found.run_id)
        if not self.catalogue.exists(name):
            self.catalogue.keep(name, found.head, found.branch)
        return name
