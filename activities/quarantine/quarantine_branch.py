"""Keep the content of an attempt's branch in a quarantine, for a person to inspect."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from temporalio import activity

from lakehouse.catalog import BranchCatalog, TableCommit, TableDiff
from lakehouse.iceberg.commit import table_commit
from lakehouse.iceberg.table_state import load_table
from lakehouse.publishing.table_versions import table_diffs
from lakehouse.quarantine.quarantined_branches import create_quarantine
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.errors import NoSuchBranch
from sluice.publishing.branch_properties import verified_at
from sluice.publishing.commit_properties import AUDITED, INSTALLATION, QUARANTINED


@dataclass(frozen=True)
class QuarantineBranchActivity:
    """The activity `quarantine_branch`.

    Needs the catalog, the installation that these runs belong to, and Iceberg's FileIO properties for the lake.
    """

    catalog: BranchCatalog
    installation: str
    io: Mapping[str, str] = field(default_factory=dict)

    @activity.defn(name="quarantine_branch")
    def quarantine_branch(self, input: QuarantineBranchInput) -> str:
        """Copy an attempt's branch to a quarantine and delete the branch; return the name of the quarantine.

        If the attempt changed no table, there is nothing to inspect. Then no quarantine is created, and the name is "".
        """
        name = self._copy(input)
        self.catalog.delete_branch(input.branch.name)
        return name

    def _copy(self, input: QuarantineBranchInput) -> str:
        branch = input.branch
        try:
            head = input.head or self.catalog.head(branch.name)
            if not self.catalog.diff(branch.base, branch.name, head):
                return ""
            properties = {**input.properties, INSTALLATION: self.installation}
            create_quarantine(self.catalog, input.name, head, branch.name, properties)
            return input.name
        except NoSuchBranch:  # copied by an earlier try whose answer was lost, fenced, or never created
            return self._recreate(input)

    def _recreate(self, input: QuarantineBranchInput) -> str:
        """Recreate the content of a deleted branch in a quarantine, after a rebase that failed once it was fenced."""
        head, base = self.catalog.find_head(input.name), input.branch.base
        if not input.versions:
            return input.name if head else ""
        if head is None:
            self.catalog.create_branch(input.name, base)
        if head in (None, base):
            commits = [self._commit(diff) for diff in table_diffs(input.versions)]
            message, names = f"Keep the tables of {input.branch.name}", list(input.versions)
            head = self.catalog.commit_tables(input.name, base, message, commits, create_namespaces_for=names)
        if QUARANTINED not in next(self.catalog.history(input.name)).properties:
            # The audited hash was deleted with the branch; the new hash contains the same tables.
            properties = {key: value for key, value in input.properties.items() if key != AUDITED}
            kept_hash = self.catalog.head(input.name)
            kept = {**verified_at(properties, kept_hash), INSTALLATION: self.installation}
            create_quarantine(self.catalog, input.name, kept_hash, input.branch.name, kept)
        return input.name

    def _commit(self, diff: TableDiff) -> TableCommit:
        if diff.after is None:
            return TableCommit(diff.name, None)
        return table_commit(diff.name, diff.after.metadata_location, load_table(diff.after, self.io).metadata)
