"""Invented statistics, tables and inputs of audits."""

from typing import Any

from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY, expand
from sluice.contracts.audit import AuditInput
from sluice.contracts.references import RunRef
from sluice.metadata.statistics import ColumnStatistics, FileStatistics, SchemaField, TableStatistics
from sluice.pipeline.table import Table

TYPES = {"c": "int", "s": "string", "list": "list<int>"}
FIELDS = [SchemaField(number, name, kind) for number, (name, kind) in enumerate(TYPES.items(), 1)]
UNIQUE, RANGE, NOT_NULL = {"unique": "c"}, {"accepted_range": {"column": "c", "min": 0}}, {"not_null": "c"}


def check(written: Any) -> Check:
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate(fields)


def file(path: str, low: int | None = None, high: int | None = None, **more: Any) -> FileStatistics:
    columns = {"c": ColumnStatistics(nulls=0, lower=low, upper=high)}
    return FileStatistics(rows=10, columns=columns, path=path, bytes=100, **more)


def table(*written: Any, added: Any = (), live: Any = (), **more: Any) -> AuditedTable:
    statistics = TableStatistics(types=TYPES, added=added, live=[*live, *added])
    return AuditedTable("n.t", [check(each) for each in written], statistics, FIELDS, **more)


def audit_input(**tables: Any) -> AuditInput:
    run_ref = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
    listed = {f"n.{name}": Table(checks=[check(each) for each in written]) for name, written in tables.items()}
    return AuditInput(run_ref=run_ref, branch="b", base="0", head="1", tables=listed)
