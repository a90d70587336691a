"""A landing folder and runs that load its files, activity by activity, on a catalog in memory."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from activities.approval.require_approval import ApprovalPolicy
from activities.publishing.publish_branch import PublishBranchActivity
from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from activities.quarantine.quarantine_branch import QuarantineBranchActivity
from activities.quarantine.resume_branch import ResumeBranchActivity
from activities.run.open_branch import OpenBranchActivity
from activities.run.select_input import SelectInputActivity
from lakehouse.publishing.table_versions import changed_tables
from lakehouse.source_files import find_files, identify_input
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult, ResumeBranchInput
from sluice.contracts.input import PublicationCheck, SelectInputInput
from sluice.contracts.lake_queries import PlanReleaseInput, ReleasePlan
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import Publication
from sluice.contracts.quarantine import QuarantineBranchInput, VerifiedWrite
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.selected_input import ManifestRef, SelectedInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import OpenBranchInput, WriteResult
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.source import Source
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.pipeline.write_modes import Replaced
from sluice.publishing.branch_properties import input_properties, quarantine_properties
from sluice.publishing.certificate import approved_properties
from sluice.publishing.commit_properties import PIPELINE, ROLLED_BACK, RUN_ID, WORKFLOW_ID
from tests.harness.activity import run_activity
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input

TABLE = "t.x"


class Folder:
    """A landing folder, and the lake that its files are loaded into."""

    def __init__(self, lake: MemoryLake, path: Path) -> None:
        self.lake, self.path = lake, path
        self.runs = 0

    def file(self, name: str, content: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def run(self, *paths: str, **options: Any) -> "Run":
        self.runs += 1
        source = Source(path=[str(self.path / each) for each in paths or (".",)], format="csv")
        return Run(self.lake, f"r{self.runs}", source, **options)


class Run:
    """One run that loads files, activity by activity."""

    def __init__(
        self,
        lake: MemoryLake,
        name: str,
        source: Source,
        *,
        policy: str = "skip",
        again: bool = False,
        one_content_per_path: bool = False,
        loads_all_contents: bool = False,
        scope: LoadScope = NO_SCOPE,
        order_matters: bool = False,
        over_younger: bool = False,
        replaces: bool | None = None,
        replaced: Replaced = "",
        pipeline: str = "p",
        row: Callable[[str], int] | None = None,
    ) -> None:
        """Identify the source files.

        Args:
            replaces: True if the run replaces the rows of earlier ones, as by default where the order matters.
            replaced: the rows that each load of the pipeline replaces, as its manifest says.
            row: the number that is loaded for a file; by default one computed from its content.
        """
        self.replaces = order_matters if replaces is None else replaces
        self.row = row or (lambda path: row_of(Path(path)))
        self.lake, self.catalog, self.source = lake, lake.catalog, source
        run_id = f"{name}-".ljust(36, "0")
        self.ref = RunRef(run_id=run_id, workflow_id=f"w-{name}", pipeline=pipeline, label=pipeline, attempt=0)
        self.replaced, self.pipeline = replaced, pipeline
        self.policy, self.again, self.one_content_per_path = policy, again, one_content_per_path
        self.loads_all_contents = loads_all_contents
        self.scope, self.order_matters, self.over_younger = scope, order_matters, over_younger
        self.digest = identify_input(find_files(source), scope).digest
        self.listed: ManifestRef | None = None
        self.pipeline_digest = ""

    def open(self) -> BranchRef:
        self.ref = self.ref.model_copy(update={"attempt": self.ref.attempt + 1})
        input = OpenBranchInput(
            run_ref=self.ref, tables={TABLE: Table()}, schema_is_fixed=True, input_digest=self.digest, again=True
        )
        opening = OpenBranchActivity(self.catalog, {}, "here", self.lake.loaded_files)
        branch: BranchRef = run_activity(opening.open_branch, input)
        return branch

    async def select(self, branch: BranchRef) -> SelectedInput:
        input = SelectInputInput.model_validate(
            {
                "run_ref": self.ref,
                "branch": branch,
                "source": self.source,
                "tables": [TABLE],
                "input_digest": self.digest,
                "scope": self.scope,
                "policy": self.policy,
                "order_matters": self.order_matters,
                "replaces": self.replaced,
                "order": LoadOrder(over_younger=self.over_younger),
                "again": self.again,
                "one_content_per_path": self.one_content_per_path,
                "loads_all_contents": self.loads_all_contents,
                "reads_selection": True,
                "pipeline_digest": self.pipeline_digest,
                "listed": self.listed,
            }
        )
        selecting = SelectInputActivity(self.catalog, self.lake.loaded_files, "here")
        selected: SelectedInput = await run_activity(selecting.select_input, input)
        self.listed = selected.manifest
        return selected

    async def write(self) -> tuple[BranchRef, SelectedInput]:
        """Load the selected files: one row for each, with a number computed from its content."""
        branch = self.open()
        selected = await self.select(branch)
        loaded = self.lake.manifests.read(selected.manifest).loaded
        rows = [{"id": self.row(file.path)} for file in loaded]
        write = self.lake.replace_rows if self.replaces else self.lake.append_rows
        write(branch.name, TABLE, rows, self.ref)
        return branch, selected

    def publish(self, branch: BranchRef, selected: SelectedInput, **properties: str) -> Publication:
        head = self.catalog.head(branch.name)
        described = {**approved_properties(self.ref, head, "", [], []), **properties}
        described.update(input_properties(self.digest, [TABLE], selected.manifest))
        input = publish_input(self.ref, branch, head, described, published=self._check(selected))
        publishing = PublishBranchActivity(self.catalog, ApprovalPolicy(self.catalog), {}, self.lake.loaded_files)
        publication: Publication = run_activity(publishing.publish_branch, input)
        return publication

    def _check(self, selected: SelectedInput) -> PublicationCheck | None:
        if self.policy == "reload":
            check = PublicationCheck(tables=[TABLE], pipeline=self.pipeline, digest=self.digest, replaces=self.replaced)
            return check.model_copy(update={"manifest": selected.manifest})
        return None if self.again else PublicationCheck(tables=[TABLE], manifest=selected.manifest)

    async def load(self) -> SelectedInput:
        """Run to the end."""
        branch, selected = await self.write()
        assert self.publish(branch, selected).merged
        self.catalog.delete_branch(branch.name)
        return selected

    async def quarantine(self) -> str:
        branch, selected = await self.write()
        name, head = f"quarantine/p/{self.ref.run_id}", self.catalog.head(branch.name)
        kept = input_properties(self.digest, [TABLE], selected.manifest)
        rows = len(self.lake.manifests.read(selected.manifest).loaded)
        verified = VerifiedWrite(head=head, attempt=self.ref.attempt, tables={TABLE: rows}, appends=True)
        properties = quarantine_properties(
            self.ref, branch.base, "audit", "bad", "2030-01-01T00:00:00+00:00", head=head, input=kept, verified=verified
        )
        input = QuarantineBranchInput(branch=branch, head=head, name=name, properties=properties)
        assert run_activity(QuarantineBranchActivity(self.catalog, "here").quarantine_branch, input) == name
        return name


def row_of(path: Path) -> int:
    return int(hashlib.sha256(path.read_bytes()).hexdigest()[:8], 16)


def roll_back(lake: MemoryLake, name: str, *runs: str) -> str:
    """Commit to main what the merge of a roll-back commits; return its run's id."""
    run_id = f"{name}-".ljust(36, "0")
    rolled_back = {ROLLED_BACK: ",".join(runs), RUN_ID: run_id, WORKFLOW_ID: f"w-{name}", PIPELINE: "p"}
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "roll back", properties=rolled_back)
    return run_id


def names(lake: MemoryLake, selected: SelectedInput) -> list[str]:
    return [Path(file.path).name for file in lake.manifests.read(selected.manifest).loaded]


def release_plan(lake: MemoryLake, run_id: str) -> ReleasePlan:
    plan: ReleasePlan = run_activity(
        PlanReleaseActivity(lake.catalog, "here", lake.loaded_files).plan_release, PlanReleaseInput(run=run_id)
    )
    return plan


def release(lake: MemoryLake, plan: ReleasePlan, run: Run) -> None:
    assert plan.input_digest == run.digest and plan.resume.manifest == run.listed
    publish_release(lake, plan)


def publish_release(lake: MemoryLake, plan: ReleasePlan) -> None:
    ref = RunRef(run_id="release-".ljust(36, "0"), workflow_id="w-release", pipeline="p", label="p", attempt=1)
    append = Write.model_validate({"source": {"path": "/in.csv"}})
    input = ResumeBranchInput(run_ref=ref, resume=plan.resume, write=append, tables=[TABLE])
    resumed = run_activity(ResumeBranchActivity(lake.catalog, {}, "here", lake.loaded_files).resume_branch, input)
    properties = approved_properties(ref, resumed.write_result.head, "", [], [])
    properties.update(input_properties(plan.input_digest, [TABLE], plan.resume.manifest))
    head, published = resumed.write_result.head, plan.resume.published
    publishing = publish_input(ref, resumed.branch, head, properties, published=published)
    publish = PublishBranchActivity(lake.catalog, ApprovalPolicy(lake.catalog), {}, lake.loaded_files).publish_branch
    assert run_activity(publish, publishing).merged


def rebase(lake: MemoryLake, run: Run, branch: BranchRef, selected: SelectedInput) -> RebaseResult:
    head = lake.catalog.head(branch.name)
    change = TableChange(operation="append", added_rows=selected.files, added_files=1)
    versions = changed_tables(lake.catalog.diff(branch.base, branch.name, head))
    run.ref = run.ref.model_copy(update={"attempt": run.ref.attempt + 1})
    input = RebaseBranchInput(
        run_ref=run.ref,
        branch=branch,
        write_result=WriteResult(head=head, tables={TABLE: change}, versions=versions),
        write=Write.model_validate({"source": {"path": "/in.csv"}}),
        rows_quarantined=False,
        published=PublicationCheck(tables=[TABLE], manifest=selected.manifest),
    )
    result: RebaseResult = run_activity(
        RebaseBranchActivity(lake.catalog, {}, "here", lake.loaded_files).rebase_branch, input
    )
    return result
