"""Sluice's metrics, in addition to those of Temporal's SDK. A replay does not emit them again."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run import RunResult


def count_run(result: RunResult, target: str) -> None:
    """Count a run by its outcome, with its rows, the time of its audits and its conflicts.

    Args:
        target: the branch that the run publishes to, if not main. Then its rows count only when main gets them.
    """
    meter = workflow.metric_meter().with_additional_attributes({"pipeline": result.pipeline})
    outcome = {"outcome": result.outcome or "", "cause": result.cause or ""}
    meter.create_counter("sluice_runs", "Runs that ended, by outcome and cause").add(1, outcome)
    if result.outcome == "published" and not target:
        rows = sum(change.added_rows for change in result.tables.values())
        meter.create_counter("sluice_rows_published", "Rows that published runs added").add(rows)
    audit = sum(result.timings.get(stage, 0.0) for stage in ("auditing", "scanning"))
    histogram = meter.create_histogram_timedelta("sluice_audit_time", "Time that a run's audits took", "s")
    histogram.record(timedelta(seconds=audit))
    for conflict in result.conflicts:
        meter.create_counter("sluice_conflicts", "Conflicts of runs with main").add(1, {"resolved": conflict.resolved})


def count_fence(pipeline: str) -> None:
    """Count a fenced attempt: its branch was deleted, so no process can continue to write to it."""
    workflow.metric_meter().create_counter("sluice_fences", "Attempts that were fenced").add(1, {"pipeline": pipeline})


def record_quarantines(open_quarantines: int, size: int) -> None:
    """Record the number of quarantines, and the size of the data files that only quarantines have, in bytes."""
    meter = workflow.metric_meter()
    meter.create_gauge("sluice_quarantines", "Open quarantines").set(open_quarantines)
    meter.create_gauge("sluice_quarantined_bytes", "Size of the data files that only quarantines contain", "By").set(
        size
    )
