"""Make the branch that one attempt writes on."""

from dataclasses import dataclass

from temporalio import activity

from activities.failures import told_to_temporal
from lakehouse.nessie import Catalogue
from lakehouse.tables import TableState
from sluice.certificate import INPUT, PIPELINE, WORKFLOW_ID
from sluice.errors import AlreadyPublished, InvalidPipeline
from sluice.names import suggestion
from sluice.orders import OpenBranch, OpenOrder


@dataclass(frozen=True)
class OpenBranchActivity:
    """Needs the catalogue."""

    catalogue: Catalogue
    io: dict[str, str]

    @activity.defn(name="open_branch")
    def open_branch(self, order: OpenOrder) -> OpenBranch:
        """Make the attempt's branch at the head of main, with the namespaces that its tables need."""
        with told_to_temporal():
            identity = self.catalogue.identity()
            if order.catalogue is not None:
                self.catalogue.check_identity(order.catalogue)
            base = self.catalogue.main_head()
            self._refuse_twice(order)
            self._check_columns(order, base)
            name = order.origin.branch
            base = self._base_of(name) or base
            self.catalogue.create_branch(name, base)
            self.catalogue.add_namespaces(name, order.tables)
            return OpenBranch(name=name, base=base, catalogue=identity)

    def _base_of(self, name: str) -> str | None:
        """Return where the branch began, if an earlier try of this act made it and its answer was lost."""
        if name not in self.catalogue.branches(name):
            return None
        return self.catalogue.fork_point(name)

    def _refuse_twice(self, order: OpenOrder) -> None:
        if order.again:
            return
        wanted = {PIPELINE: order.origin.pipeline, INPUT: order.input_digest}
        earlier = self.catalogue.published(wanted)
        if earlier is not None:
            workflow, commit = earlier.get(WORKFLOW_ID, "?"), earlier["hash"][:12]
            raise AlreadyPublished(
                f"this input was published by {order.origin.pipeline} already: run {workflow}, commit {commit} "
                "on main. To publish it again, say --again"
            )

    def _check_columns(self, order: OpenOrder, base: str) -> None:
        """Find a misspelt column before Spark starts, where the table is there and keeps its columns."""
        for table, columns in order.needed_columns.items():
            place = self.catalogue.table(self.catalogue.main, table, base)
            types = TableState.load(place, None, self.io).types if place else None
            for column in columns:
                if types is not None and column not in types:
                    raise InvalidPipeline(
                        f"the pipeline names the column {column!r}, which {table} does not have"
                        f"{suggestion(column, types)}"
                    )
