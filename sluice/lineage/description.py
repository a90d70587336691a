"""Describe a run for an OpenLineage event, as far as the workflow knows it."""

from collections.abc import Mapping, Sequence

from sluice.approval.waivers import WaivedCheck
from sluice.checks.verdicts import CheckResult
from sluice.contracts.lineage import EmitLineageInput, LineageCheck, LineageEventType, LineageTable
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.run import Outcome, RunResult
from sluice.contracts.run_request import RunRequest
from sluice.contracts.write import WriteResult
from sluice.pipeline.table import Table

_CHECKS_BYTES = 200_000
"""Maximum size of the verdicts in an event, in characters: receivers limit its size. Failed checks come first."""
_MAX_SOURCES = 100
_LONGEST_TEXT = 500
_LONGEST_SQL = 20_000
"""Maximum length of all SQL statements of an event together, and of the pipeline's description, in characters."""
_EVENTS: Mapping[Outcome, LineageEventType] = {
    "published": "COMPLETE",
    "checked": "COMPLETE",
    "skipped": "COMPLETE",
    "quarantined": "ABORT",
    "discarded": "ABORT",
    "cancelled": "ABORT",
    "failed": "FAIL",
}


def closing_event(result: RunResult) -> LineageEventType:
    """Return the type of the event that ends a run."""
    return _EVENTS[result.outcome] if result.outcome else "FAIL"


def describe_event(
    event: LineageEventType,
    at: str,
    request: RunRequest,
    run_ref: RunRef,
    result: RunResult,
    *,
    scheduled_at: str = "",
    read_tables: Sequence[str] = (),
    branch: BranchRef | None = None,
    base: str = "",
    written: WriteResult | None = None,
) -> EmitLineageInput:
    """Return one event of a run, as far as the workflow knows it.

    Only the event of a published run has output tables and assertions about them. The rows of a run that was not
    published are in no dataset that others know. Those of a run that publishes to another branch than main are not in
    one yet.

    Args:
        at: the time of the event, in ISO 8601.
        branch: the branch of the attempt, if there is one.
        base: the hash of main at the start of the run.
    """
    pipeline, loaded, is_end = request.pipeline, result.input, event not in ("START", "RUNNING")
    on_main = result.outcome == "published" and not request.target
    write = pipeline.write
    return EmitLineageInput(
        event=event,
        at=at,
        run_ref=run_ref,
        description=pipeline.description[:_LONGEST_SQL],
        parent=request.lineage_parent,
        scheduled_at=scheduled_at,
        sources=write.source.paths[:_MAX_SOURCES] if write.source and not request.restore else [],
        source_files=loaded.files if loaded else request.input.files or None,
        source_bytes=loaded.bytes if loaded else request.input.bytes or None,
        sql=_short_sql([*([write.transform] if write.transform else []), *write.statements]),
        tables=list(pipeline.tables),
        read_tables=list(read_tables),
        base=branch.base if branch else base,
        catalog_id=branch.catalog_id if branch else None,
        published=_published(written) if on_main and written else [],
        checks=_checks(result, pipeline.tables, pipeline.show_values) if is_end else [],
        tags=_tags(result) if is_end else {"sluice_workflow_id": result.workflow_id},
        error=result.reason if event == "FAIL" else "",
    )


def _published(written: WriteResult) -> list[LineageTable]:
    """Return the tables that a run changed. A table that it dropped is not an output."""
    return [
        LineageTable(
            name=name,
            version=version.after,
            rows=written.tables[name].added_rows,
            bytes=written.tables[name].added_bytes,
            files=written.tables[name].added_files,
        )
        for name, version in written.versions.items()
        if version.after and name in written.tables
    ]


def _tags(result: RunResult) -> dict[str, str]:
    tags = {
        "workflow_id": result.workflow_id,
        "outcome": result.outcome,
        "cause": result.cause,
        "reason": result.reason[:_LONGEST_TEXT],
        "audited_hash": result.audited_hash,
        "main_after": result.main_after,
        "quarantine": result.branch,
        "attempts": str(result.attempts),
        "checks": str(len(result.checks)),
    }
    return {f"sluice_{name}": value for name, value in tags.items() if value}


def _checks(result: RunResult, tables: Mapping[str, Table], show_values: bool) -> list[LineageCheck]:
    listed: list[LineageCheck] = []
    size = 0
    for each in sorted(result.checks, key=lambda check: check.verdict == "pass"):
        check = _check(each, tables, result.waived, show_values)
        size += len(check.model_dump_json())
        if size > _CHECKS_BYTES:
            break
        listed.append(check)
    return listed


def _check(
    result: CheckResult, tables: Mapping[str, Table], waived: Sequence[WaivedCheck], show_values: bool
) -> LineageCheck:
    stated = tables[result.table].checks if result.table in tables else []
    check = stated[result.index] if 0 <= result.index < len(stated) else None
    may_show = show_values or not (check is None or check.observes_values)
    waiver = next((each for each in waived if (each.table, each.index) == (result.table, result.index)), None)
    more = {
        "table": result.table,
        "columns": result.columns if len(result.columns) > 1 else None,
        "failed_rows": result.failed_rows,
        "not_answered": result.message[:_LONGEST_TEXT] or None if result.verdict == "error" else None,
        "waived_until": waiver.until if waiver else None,
    }
    return LineageCheck(
        table=result.table,
        kind=result.check,
        title=result.title[:_LONGEST_TEXT],
        columns=result.columns,
        passed=result.verdict == "pass",
        severity=check.severity if check else "fail",
        expected=result.expected[:_LONGEST_TEXT],
        observed=str(result.observed)[:_LONGEST_TEXT] if may_show and result.observed is not None else "",
        more={name: value for name, value in more.items() if value is not None},
    )


def _short_sql(statements: Sequence[str]) -> list[str]:
    """Return the first statements that together fit into an event."""
    listed: list[str] = []
    for each in statements:
        if sum(map(len, listed)) + len(each) > _LONGEST_SQL:
            break
        listed.append(each)
    return listed
