"""Read from main whether a hash was published."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from sluice.contracts.publish import ConfirmPublicationInput, Publication


@dataclass(frozen=True)
class ConfirmPublicationActivity:
    """The activity `confirm_publication`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="confirm_publication")
    def confirm_publication(self, input: ConfirmPublicationInput) -> Publication:
        """Return whether main holds the hash, whatever the answers to earlier requests were."""
        with as_application_error():
            return self.catalog.find_publication(input.head, input.base) or Publication(merged=False)
