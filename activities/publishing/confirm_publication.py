"""Find the publication of a run on main, if there is one."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.publishing.published_commits import find_merge_of_run, with_overtaken
from sluice.contracts.publish import ConfirmPublicationInput, Publication


@dataclass(frozen=True)
class ConfirmPublicationActivity:
    """The activity `confirm_publication`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="confirm_publication")
    def confirm_publication(self, input: ConfirmPublicationInput) -> Publication:
        """Return the publication of a run by any of its attempts, regardless of the answers to its merge requests."""
        publication = find_merge_of_run(self.catalog, input.run_id, input.since)
        if publication is None and input.head:
            publication = self.catalog.find_publication(input.head, input.since)
        if publication is None:
            return Publication(merged=False)
        return with_overtaken(self.catalog, publication, input.base or input.since, input.watched_tables)
