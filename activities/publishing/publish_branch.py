"""Merge exactly the audited hash into main."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from temporalio import activity

from activities.approval.require_approval import ApprovalPolicy
from activities.catalog_identity import check_catalog
from activities.publishing.input_overlap import input_overlap
from activities.publishing.merge_priority import MergePriority
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.repeated_files import repeated_files
from lakehouse.loaded_files import LoadedFiles
from lakehouse.published_commits import find_merge_of_run, with_overtaken
from lakehouse.table_versions import tables_changed_since
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.errors import AlreadyPublished
from sluice.publishing.certificate import GRANTS_WAIVERS, INSTALLATION
from sluice.publishing.recorded_waivers import GRANTED_FOR
from sluice.publishing.written_tables import check_no_repeated_files


@dataclass(frozen=True)
class PublishBranchActivity:
    """The activity `publish_branch`.

    Needs the catalog, the approval policy of this worker, and Iceberg's FileIO properties for the lake.
    """

    catalog: BranchCatalog
    policy: ApprovalPolicy
    io: Mapping[str, str] = field(default_factory=dict)
    loaded_files: LoadedFiles | None = None
    """The index of loaded files."""
    priority: MergePriority | None = None
    """The merge priority of runs; None if the order of merges does not matter."""

    @activity.defn(name="publish_branch")
    def publish_branch(self, input: PublishBranchInput) -> Publication:
        """Merge once. If an earlier try merged and its answer was lost, find that merge in the history of main."""
        check_catalog(self.catalog, input.branch.catalog_id)
        since = input.first_base or input.branch.base
        if earlier := find_merge_of_run(self.catalog, input.run_ref.run_id, since):
            publication = with_overtaken(self.catalog, earlier, input.branch.base, input.watched_tables)
        else:
            publication = self._publish(input, since)
        if self.priority:
            self.priority.update(input, publication)
        return publication

    def _publish(self, input: PublishBranchInput, since: str) -> Publication:
        """Merge after runs with merge priority, unless main changed a table meanwhile."""
        self.policy.refuse_unapproved(input)
        if self.priority:
            self.priority.wait(input)
        if conflicts := self._last_look(input, since):
            is_first_try = activity.info().attempt == 1  # then no merge has been requested
            return Publication(merged=False, conflicts=conflicts, merge_requested=not is_first_try)
        return self._merge(input)

    def _last_look(self, input: PublishBranchInput, since: str) -> list[str]:
        """Return the tables that main changed meanwhile, among the run's tables and those that its checks read.

        Raises:
            UnexpectedWrite: the merge would add a file that a table contains already.
            AlreadyPublished: main contains the whole input by now.
        """
        branch = input.branch
        if conflicts := self.catalog.find_conflicts(branch.name, input.head):
            return conflicts
        overlap = input_overlap(self.loaded_files, input.published, input.run_ref.run_id)
        if overlap and input.published:
            if input.published.manifest is None:  # the whole input: a rewrite would publish it, too
                raise AlreadyPublished(f"{overlap}. To publish it again, add --again")
            return input.published.tables
        diffs = self.catalog.diff(branch.base, branch.name, input.head)
        check_no_repeated_files(repeated_files(self.catalog, self.io, diffs, since, all_files=input.all_files))
        return tables_changed_since(self.catalog, input.watched_tables, branch.base)  # the merge does not compare them

    def _merge(self, input: PublishBranchInput) -> Publication:
        properties = {**input.properties, INSTALLATION: self.policy.installation}
        if GRANTS_WAIVERS in properties:
            properties[GRANTED_FOR] = self.policy.granted_for(input.branch.name, input.head)
        publication = self.catalog.publish(input.branch, input.head, input.author, input.message, properties)
        return with_overtaken(self.catalog, publication, input.branch.base, input.watched_tables)
