"""The planner: decide checks from metadata, and assign the others to the engines that scan rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.audit.bad_rows_query import bad_rows_query
from sluice.audit.engine_choice import RefusingEngine, accepted_checks
from sluice.audit.scan_groups import ScanGroup
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check, Evaluation
from sluice.checks.results import AnswerSource, check_result, error_result
from sluice.checks.rows import RowCheck
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditInput, AuditResult
from sluice.metadata.statistics import TableStatistics
from sluice.sql.dialect import Dialect

Sampler = Callable[[AuditedTable, Check], Sequence[dict[str, Any]]]
"""Function that returns a few bad rows of a check that metadata proves to fail."""


@dataclass(frozen=True)
class TablePlan:
    """The verdicts on one table that need no scan, and the checks that need one."""

    decided: list[CheckResult] = field(default_factory=list)
    undecided: dict[int, Check] = field(default_factory=dict)


def prove_checks(checks: Sequence[Check], statistics: TableStatistics) -> dict[int, Evaluation | None]:
    """Return the evaluation that metadata proves for each check, or None if it proves none."""
    return {index: check.prove(statistics) for index, check in enumerate(checks)}


def plan_audit(
    input: AuditInput,
    tables: Iterable[tuple[str, AuditedTable | None]],
    carried_over: Mapping[tuple[str, int], CheckResult],
    engines: Sequence[RefusingEngine],
    sample: Sampler,
) -> AuditResult:
    """Decide checks from metadata, and assign every other check to the engines of the process or to Spark."""
    decided: list[CheckResult] = []
    by_files: dict[str, list[int]] = {}
    by_spark: dict[str, list[int]] = {}
    for name, table in tables:
        if table is None:
            decided += missing_table(name, input.tables[name].checks)
            continue
        plan = plan_table(table, carried_over, sample)
        decided += plan.decided
        accepted = accepted_checks(table, plan.undecided, engines)
        if accepted:
            by_files[name] = sorted(accepted)
        if refused := plan.undecided.keys() - accepted:
            by_spark[name] = sorted(refused)
    return AuditResult(decided=decided, files=by_files, undecided=by_spark)


def plan_table(table: AuditedTable, carried_over: Mapping[tuple[str, int], CheckResult], sample: Sampler) -> TablePlan:
    """Decide the checks of a table from metadata and from carried-over verdicts; the others are undecided."""
    plan = TablePlan()
    for index, check in enumerate(table.checks):
        if (problem := table.problem(check)) is not None:
            plan.decided.append(error_result(table.name, index, check, problem))
        elif (verdict := carried_over.get((table.name, index))) is not None:
            plan.decided.append(verdict)
        elif table.carried and check.scope == "added" and check.row_level:
            plan.undecided[index] = check  # metadata counts all rows of a file, the carried ones too
        elif (evaluation := check.prove(table.statistics)) is not None:
            has_bad_rows = isinstance(check, RowCheck) and not evaluation.passed
            query = bad_rows_query(table.name, check, table.statistics.types, evaluation)
            source = AnswerSource("metadata", sample(table, check) if has_bad_rows else [], query=query)
            plan.decided.append(check_result(table.name, index, check, evaluation, source))
        else:
            plan.undecided[index] = check
    return plan


def missing_table(name: str, checks: Sequence[Check]) -> list[CheckResult]:
    """Return an error for every check of a table that is not on the branch."""
    why = f"there is no table {name} on the branch"
    return [error_result(name, index, check, why) for index, check in enumerate(checks)]


def sample_group(table: AuditedTable, check: Check, sql: Dialect) -> ScanGroup | None:
    """Return a scan to sample the bad rows of a check that metadata proves to fail, or None if no scan can."""
    if not isinstance(check, RowCheck):
        return None
    types = table.statistics.types
    query = check.build_query(sql, types)
    files = [file for file in table.statistics.files(check.scope) if check.known_in(file, types) != 0]
    return None if query.groups else ScanGroup(table, check.scope, {0: check}, {0: query}, files)
