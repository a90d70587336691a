"""Answer from metadata alone every check that it can answer."""

from collections.abc import Iterator
from dataclasses import dataclass

from temporalio import activity

from activities.failures import told_to_temporal
from lakehouse.nessie import Catalogue
from lakehouse.tables import TableState
from sluice.checks.base import Check, Finding
from sluice.checks.nulls import NotNull, NotNullProportion
from sluice.names import suggestion
from sluice.orders import AuditOrder, AuditPlan
from sluice.verdicts import CheckResult, concluded, fitted, unanswered


def table_states(
    catalogue: Catalogue, order: AuditOrder, io: dict[str, str]
) -> Iterator[tuple[str, TableState | None]]:
    """Load each table of an audit at the audited hash, beside what it was at the base; None if it is not there."""
    for name in order.tables:
        after = catalogue.table(order.branch, name, order.head)
        before = catalogue.table(catalogue.main, name, order.base)
        yield name, TableState.load(after, before, io) if after else None


@dataclass(frozen=True)
class AuditBranchActivity:
    """Needs the catalogue and the properties by which Iceberg reads the lake."""

    catalogue: Catalogue
    io: dict[str, str]

    @activity.defn(name="audit_branch")
    def audit_branch(self, order: AuditOrder) -> AuditPlan:
        """Give the verdicts that metadata proves, and say which checks the rows must be asked."""
        with told_to_temporal():
            decided: list[CheckResult] = []
            undecided: dict[str, list[int]] = {}
            for name, state in table_states(self.catalogue, order, self.io):
                checks = order.tables[name].checks
                if state is None:
                    decided += [unanswered(name, check, f"there is no table {name} on the branch") for check in checks]
                    continue
                columns = {column for check in checks for column in check.column_names}
                facts = state.facts(columns, any(check.scope == "table" for check in checks))
                for index, check in enumerate(checks):
                    missing = [column for column in check.column_names if column not in facts.types]
                    finding = None if missing else check.prove(facts)
                    if missing:
                        why = f"{name} has no column {missing[0]!r}{suggestion(missing[0], facts.types)}"
                        decided.append(unanswered(name, check, why))
                    elif finding is not None:
                        sample = _bad_rows(state, check, finding)
                        decided.append(concluded(name, check, finding, "metadata", sample))
                    else:
                        undecided.setdefault(name, []).append(index)
            return AuditPlan(decided=fitted(decided), undecided=undecided)


def _bad_rows(state: TableState, check: Check, finding: Finding) -> list[dict[str, object]]:
    if finding.passed or not isinstance(check, NotNull | NotNullProportion):
        return []
    return state.rows_with_null(check.column, added_only=check.scope == "added")
