"""Create the branch of one attempt."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.attempt_branch import AttemptBranch
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_state import TableState, load_table
from lakehouse.input.later_loads import LaterLoads
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.publishing.published_commits import describe_other_version
from sluice.contracts.references import BranchRef
from sluice.contracts.write import OpenBranchInput
from sluice.errors import AlreadyPublished, InvalidInput, InvalidPipeline
from sluice.input.held_files import LoadedFile
from sluice.input.selection import refuse_partly_loaded
from sluice.pipeline.loading_order import layout_problem
from sluice.pipeline.loading_rules import is_known_as_a_whole
from sluice.pipeline.table_properties import opening_problem
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.capabilities import require_capabilities
from sluice.publishing.commit_properties import NO_PUBLISH
from sluice.publishing.opening import opening_problems, published_before, tables_to_read, writable_tables
from sluice.registration.targets import NO_TARGETS, Targets


@dataclass(frozen=True)
class OpenBranchActivity:
    """The activity `open_branch`.

    Needs the catalog, Iceberg's FileIO properties for the lake, the installation of these runs, and the index of loaded
    files.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str
    loaded_files: LoadedFiles
    targets: Targets = NO_TARGETS
    """The targets that publications can be registered with."""
    lake: str = ""
    """The location of new tables."""

    @activity.defn(name="open_branch")
    def open_branch(self, input: OpenBranchInput) -> BranchRef:
        """Create the attempt's branch at the head of main, with the namespaces that its tables need."""
        require_capabilities(self.catalog.capabilities, ())  # `_refuse_repeat` searches by properties
        identity = input.catalog_id or self.catalog.identity()
        attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch, input.requested_at)
        if unregistrable := self.targets.problems(input.after_publish, input.tables, self.lake):
            raise InvalidPipeline("\n".join(unregistrable))
        self._refuse_repeat(input)
        if input.write:
            loads = LaterLoads(self.catalog, self.io, self.loaded_files)
            loads.check_youngest(input.run_ref.pipeline, input.write, list(input.tables), input.order)
        states = self._read_tables(input, attempt.base)
        types = {name: state.types if state else None for name, state in states.items()}
        problems = opening_problems(input, types, self.catalog.capabilities)
        if problems := [*problems, *_unreplaceable(input, states), *self._unsafe_tables(input, attempt.base)]:
            raise InvalidPipeline("\n".join(problems))
        message = f"Begin attempt {input.run_ref.attempt}"
        described = input_properties(input.input_digest, list(input.tables), scope=input.scope)
        properties = {**described, **({} if input.publish else {NO_PUBLISH: "true"})}
        attempt.create(input.run_ref, message, create_namespaces_for=list(input.tables), properties=properties)
        return attempt.ref(identity, self._sorted_tables(input, states), tables=writable_tables(input))

    def _refuse_repeat(self, input: OpenBranchInput) -> None:
        if input.again:
            return
        pipeline, write = input.run_ref.pipeline, input.write
        replaces = write.traits.replaces if write and write.built_in else ""
        earlier = self.loaded_files.find_input(pipeline, input.input_digest, [*input.tables], replaces)
        if earlier and write and not write.built_in and write.source:
            self._refuse_older_input(earlier, pipeline)
        if earlier is not None:
            message = published_before(pipeline, earlier.commit, earlier.workflow_id)
            edited = describe_other_version(self.catalog, earlier.run_id, pipeline, input.pipeline_digest)
            raise AlreadyPublished(message + edited)
        if write and is_known_as_a_whole(write):
            refuse_partly_loaded(self.loaded_files.find_overlapping(pipeline, [input.scope], [*input.tables]))

    def _refuse_older_input(self, earlier: LoadedFile, pipeline: str) -> None:
        """Check that a program did not load another input after the earlier run with this one.

        Raises:
            InvalidInput: the program loaded another input, and may have replaced the rows of that run. A person
                decides.
        """
        if self.loaded_files.is_replaced(earlier, pipeline, "partitions"):
            raise InvalidInput(
                f"main contains this input: run {earlier.workflow_id} published it (commit {earlier.commit[:12]}). The "
                f"pipeline {pipeline} loaded other files after that, and its program may have replaced these rows. "
                "To run the program on this input again, add --again"
            )

    def _read_tables(self, input: OpenBranchInput, base: str) -> dict[str, TableState | None]:
        names = tables_to_read(input, self.catalog.capabilities)
        versions = {name: self.catalog.table_version(self.catalog.main, name, base) for name in names}
        return {
            name: TableState.load(version, None, self.io) if version else None for name, version in versions.items()
        }

    def _unsafe_tables(self, input: OpenBranchInput, base: str) -> list[str]:
        """Return the required changes to tables on main whose properties allow a write to delete files."""
        names = [name for name in input.tables if name not in input.tables_made_safe]
        versions = {name: self.catalog.table_version(self.catalog.main, name, base) for name in names}
        tables = {name: load_table(version, self.io) for name, version in versions.items() if version}
        return list(filter(None, (opening_problem(name, table.properties) for name, table in tables.items())))

    def _sorted_tables(self, input: OpenBranchInput, states: dict[str, TableState | None]) -> list[str]:
        tables = {name: states.get(name) for name in input.tables} if input.schema_is_fixed else {}
        return [name for name, state in tables.items() if state and state.distribution == "range"]


def _unreplaceable(input: OpenBranchInput, states: dict[str, TableState | None]) -> list[str]:
    """Return the reasons why the run cannot replace partitions of its tables, if its write mode does that."""
    if not input.write or not input.write.built_in or not input.write.traits.replaces_partitions:
        return []
    held = {name: state for name in input.tables if (state := states.get(name))}
    return [problem for name, state in held.items() if (problem := layout_problem(name, *state.layout))]
