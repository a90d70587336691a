"""Merge exactly the audited hash into main."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from temporalio import activity

from activities.approval.require_approval import ApprovalPolicy
from activities.publishing.input_overlap import input_overlap
from activities.publishing.merge_priority import MergePriority
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.repeated_files import repeated_files
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.publishing.published_commits import find_merge_of_run, with_overtaken
from lakehouse.publishing.table_versions import tables_changed_since
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.publishing.commit_properties import GRANTS_WAIVERS, INSTALLATION
from sluice.publishing.merge_decision import MainBeforeMerge, decide_merge
from sluice.publishing.recorded_waivers import GRANTED_FOR


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
        since = input.main.first_base or input.branch.base
        if earlier := find_merge_of_run(self.catalog, input.run_ref.run_id, since):
            return with_overtaken(self.catalog, earlier, input.branch.base, input.main.watched_tables)
        return self._publish(input, since)

    def _publish(self, input: PublishBranchInput, since: str) -> Publication:
        """Merge after runs with merge priority, unless main changed a table meanwhile.

        Raises:
            AlreadyPublished, UnexpectedWrite: see `decide_merge`.
        """
        self.policy.refuse_unapproved(input)
        if self.priority and not input.has_merge_slot:
            self.priority.wait(input.tables)
        if conflicts := decide_merge(self._read_main(input, since), input.main.published):
            is_first_try = activity.info().attempt == 1  # then no merge has been requested
            return Publication(merged=False, conflicts=conflicts, merge_requested=not is_first_try)
        return self._merge(input)

    def _read_main(self, input: PublishBranchInput, since: str) -> MainBeforeMerge:
        """Return what main contains now. A conflict decides alone, so the rest is not read then."""
        branch = input.branch
        if conflicts := self.catalog.find_conflicts(branch.name, input.head):
            return MainBeforeMerge(conflicts=conflicts)
        if overlap := input_overlap(self.loaded_files, input.main.published, input.run_ref.run_id):
            return MainBeforeMerge(overlap=overlap)
        diffs = self.catalog.diff(branch.base, branch.name, input.head)
        return MainBeforeMerge(
            repeated_files=repeated_files(self.catalog, self.io, diffs, since, all_files=input.main.all_files),
            changed_watched_tables=tables_changed_since(self.catalog, input.main.watched_tables, branch.base),
        )

    def _merge(self, input: PublishBranchInput) -> Publication:
        commit = input.commit
        properties = {**commit.properties, INSTALLATION: self.policy.installation}
        if GRANTS_WAIVERS in properties:
            properties[GRANTED_FOR] = self.policy.granted_for(input.branch.name, input.head)
        publication = self.catalog.publish(input.branch, input.head, commit.author, commit.message, properties)
        return with_overtaken(self.catalog, publication, input.branch.base, input.main.watched_tables)
