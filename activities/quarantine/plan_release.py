"""Plan the release of a quarantined branch."""

from dataclasses import dataclass

from temporalio import activity

from activities.publishing.input_overlap import input_overlap
from lakehouse.catalog import BranchCatalog
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.publishing.published_commits import find_publication_of_run
from lakehouse.quarantine.quarantined_branches import QuarantinedBranch, find_only_quarantined_branch
from sluice.contracts.existing_rows import Resume
from sluice.contracts.lake_queries import PlanReleaseInput, ReleasePlan
from sluice.errors import InvalidInput
from sluice.input.publication_check import check_of_quarantine
from sluice.input.publications import read_input_record
from sluice.pipeline.scope import LoadScope
from sluice.publishing.commit_properties import INPUT, PIPELINE_DIGEST, SCOPE
from sluice.publishing.load_properties import PARTITION, requeued_runs
from sluice.publishing.release import check_not_published, check_releasable, plan_release


@dataclass(frozen=True)
class PlanReleaseActivity:
    """The activity `plan_release`.

    Needs the catalog, the installation that quarantines must belong to, and the index of loaded files.
    """

    catalog: BranchCatalog
    installation: str
    loaded_files: LoadedFiles | None = None

    @activity.defn(name="plan_release")
    def plan_release(self, input: PlanReleaseInput) -> ReleasePlan:
        """Return the plan for a run that publishes the quarantined rows. Refuse what `resume_branch` would refuse."""
        branch = find_only_quarantined_branch(self.catalog, input.run)
        verified = check_releasable(branch.summary, branch.verified, self.installation)
        resume = plan_release(branch.summary, branch.base, verified, input.statements)
        commit = find_publication_of_run(self.catalog, resume.run_id, resume.base)
        check_not_published(resume, commit.workflow_id if commit else "", commit.hash if commit else "")
        resume = self._ask_for_its_input(branch, resume, again=input.again)
        resume = resume.model_copy(update={"requeued_runs": sorted(requeued_runs(branch.properties))})
        digest = branch.properties.get(INPUT, "")
        return ReleasePlan(
            summary=branch.summary,
            resume=resume,
            partition=branch.properties.get(PARTITION, ""),
            input_digest=digest,
            scope=LoadScope(content=branch.properties.get(SCOPE, "")),
            pipeline_digest=branch.properties.get(PIPELINE_DIGEST, ""),
            tables=list(verified.tables),
        )

    def _ask_for_its_input(self, branch: QuarantinedBranch, resume: Resume, *, again: bool) -> Resume:
        """Return the release with the input of the quarantined run, and with the check to repeat at each attempt.

        Raises:
            InvalidInput: main contains files of this input already.
        """
        record = read_input_record(branch.properties)
        manifest = record.manifest if record else None
        header = self.loaded_files.manifests.read(manifest).header if manifest and self.loaded_files else None
        check = None if again else check_of_quarantine(branch.properties, header)
        if overlap := input_overlap(self.loaded_files, check, ""):
            raise InvalidInput(f"{overlap}. To publish {branch.branch} anyway, add --again")
        return resume.model_copy(update={"manifest": manifest, "published": check})
