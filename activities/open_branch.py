"""Make the branch that one attempt writes on."""

from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_state import TableState
from sluice.checks.base import Check, check_location
from sluice.contracts.activity_inputs import BranchRef, OpenBranchInput
from sluice.errors import AlreadyPublished, InvalidPipeline
from sluice.identifiers import suggestion
from sluice.pipeline.table import column_problems
from sluice.publishing.certificate import INPUT, PIPELINE, WORKFLOW_ID


@dataclass(frozen=True)
class OpenBranchActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="open_branch")
    def open_branch(self, input: OpenBranchInput) -> BranchRef:
        """Make the attempt's branch at the head of main, with the namespaces that its tables need."""
        with as_application_error():
            identity = self.catalog.identity()
            if input.catalog_id is not None:
                self.catalog.check_identity(input.catalog_id)
            name = input.run_ref.branch
            attempt = AttemptBranch(self.catalog, self.installation, name)
            base = attempt.base
            self._refuse_twice(input)
            self._check_checks(input, base)
            message = f"Begin attempt {input.run_ref.attempt}"
            attempt.create(input.run_ref, message, create_namespaces_for=list(input.tables))
            return BranchRef(
                name=name,
                base=base,
                catalog_id=identity,
                sorted_tables=self._sorted_tables(input, base),
                commit_timeout=self.catalog.capabilities.commit_timeout,
            )

    def _refuse_twice(self, input: OpenBranchInput) -> None:
        if input.again:
            return
        earlier = self.catalog.find_published({PIPELINE: input.run_ref.pipeline, INPUT: input.input_digest})
        if earlier is not None:
            workflow, commit = earlier.properties.get(WORKFLOW_ID, "?"), earlier.hash[:12]
            raise AlreadyPublished(
                f"this input was published by {input.run_ref.pipeline} already: run {workflow}, commit {commit} "
                "on main. To publish it again, say --again"
            )

    def _check_checks(self, input: OpenBranchInput, base: str) -> None:
        """Find what no check can ask, before Spark starts: of columns that stay, and of tables beside."""
        problems = []
        for name, table in input.tables.items():
            types = self._types(name, base) if input.schema_is_fixed else None
            problems += column_problems(name, table, types) if types is not None else []
            for check in table.checks:
                problems += [check_location(check) + why for why in self._other_problems(check, input, base)]
        if problems:
            raise InvalidPipeline("\n".join(dict.fromkeys(problems)))

    def _sorted_tables(self, input: OpenBranchInput, base: str) -> list[str]:
        states = {name: self._state(name, base) for name in input.tables} if input.schema_is_fixed else {}
        return [name for name, state in states.items() if state and state.distribution == "range"]

    def _types(self, table: str, at: str) -> dict[str, str] | None:
        state = self._state(table, at)
        return state.types if state else None

    def _state(self, table: str, at: str) -> TableState | None:
        version = self.catalog.table_version(self.catalog.main, table, at)
        return TableState.load(version, None, self.io) if version else None

    def _other_problems(self, check: Check, input: OpenBranchInput, base: str) -> list[str]:
        """Say which other tables of a check are not there; those that the run makes may come yet."""
        found = []
        for other in check.references:
            made_by_run = other.table in input.tables and other.ref == "branch"
            types = self._types(other.table, base)
            if types is None:
                found += [] if made_by_run else [f"there is no table {other.table} on main"]
            elif not made_by_run or input.schema_is_fixed:
                missing = [name for name in other.columns if name not in types]
                found += [f"{other.table} has no column {name!r}{suggestion(name, types)}" for name in missing]
        return found
