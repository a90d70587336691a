"""Make the branch that one attempt writes on."""

from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import told_to_temporal
from lakehouse.iceberg.table_state import TableState
from lakehouse.nessie.catalog import Catalogue
from lakehouse.nessie.mainline import Mainline
from sluice.checks.base import Check, place
from sluice.contracts.activity_inputs import OpenBranch, OpenOrder
from sluice.errors import AlreadyPublished, InvalidPipeline
from sluice.identifiers import suggestion
from sluice.pipeline.model import fit_problems
from sluice.publishing.certificate import INPUT, PIPELINE, WORKFLOW_ID


@dataclass(frozen=True)
class OpenBranchActivity:
    """Needs the catalogue, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalogue: Catalogue
    mainline: Mainline
    io: dict[str, str]
    realm: str

    @activity.defn(name="open_branch")
    def open_branch(self, order: OpenOrder) -> OpenBranch:
        """Make the attempt's branch at the head of main, with the namespaces that its tables need."""
        with told_to_temporal():
            identity = self.catalogue.identity()
            if order.catalogue is not None:
                self.catalogue.check_identity(order.catalogue)
            name = order.origin.branch
            making = AttemptBranch(self.catalogue, self.mainline, self.realm, name)
            base = making.base
            self._refuse_twice(order)
            self._check_checks(order, base)
            message = f"Begin attempt {order.origin.attempt}"
            making.begin(order.origin, message, lambda: self.catalogue.put_namespaces(name, order.tables))
            return OpenBranch(name=name, base=base, catalogue=identity, in_order=self._in_order(order, base))

    def _refuse_twice(self, order: OpenOrder) -> None:
        if order.again:
            return
        wanted = {PIPELINE: order.origin.pipeline, INPUT: order.input_digest}
        earlier = self.mainline.published(wanted)
        if earlier is not None:
            workflow, commit = earlier.get(WORKFLOW_ID, "?"), earlier["hash"][:12]
            raise AlreadyPublished(
                f"this input was published by {order.origin.pipeline} already: run {workflow}, commit {commit} "
                "on main. To publish it again, say --again"
            )

    def _check_checks(self, order: OpenOrder, base: str) -> None:
        """Find what no check can ask, before Spark starts: of columns that stay, and of tables beside."""
        problems = []
        for name, table in order.tables.items():
            types = self._types(name, base) if order.keeps_columns else None
            problems += fit_problems(name, table, types) if types is not None else []
            for check in table.checks:
                problems += [place(check) + why for why in self._other_problems(check, order, base)]
        if problems:
            raise InvalidPipeline("\n".join(dict.fromkeys(problems)))

    def _in_order(self, order: OpenOrder, base: str) -> list[str]:
        states = {name: self._state(name, base) for name in order.tables} if order.keeps_columns else {}
        return [name for name, state in states.items() if state and state.distribution == "range"]

    def _types(self, table: str, at: str) -> dict[str, str] | None:
        state = self._state(table, at)
        return state.types if state else None

    def _state(self, table: str, at: str) -> TableState | None:
        found = self.catalogue.table(self.catalogue.main, table, at)
        return TableState.load(found, None, self.io) if found else None

    def _other_problems(self, check: Check, order: OpenOrder, base: str) -> list[str]:
        """Say which other tables of a check are not there; those that the run makes may come yet."""
        found = []
        for other in check.others:
            made_by_run = other.table in order.tables and other.ref == "branch"
            types = self._types(other.table, base)
            if types is None:
                found += [] if made_by_run else [f"there is no table {other.table} on main"]
            elif not made_by_run or order.keeps_columns:
                missing = [name for name in other.columns if name not in types]
                found += [f"{other.table} has no column {name!r}{suggestion(name, types)}" for name in missing]
        return found
