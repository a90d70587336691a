"""Housekeeping beside runs: a person's orders about quarantines, and the reaper that a schedule starts."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.quarantine import HouseOrder, Reaped, ReapOrder
    from workflows.metrics import reaped as note

_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1))


@workflow.defn(name="KeepHouse")
class KeepHouse:
    """One order about one quarantined branch; Temporal keeps who gave it and when."""

    @workflow.run
    async def run(self, order: HouseOrder) -> str:
        """Do it; return the branch that is there now, if any."""
        left: str = await workflow.execute_activity(
            "keep_house",
            order,
            result_type=str,
            start_to_close_timeout=timedelta(minutes=1),
            schedule_to_close_timeout=timedelta(minutes=10),
            retry_policy=_RETRY,
            summary=f"{order.action} {order.branch}",
        )
        return left


@workflow.defn(name="Reap")
class Reap:
    """Deals with what nobody deals with any more."""

    @workflow.run
    async def run(self, order: ReapOrder) -> Reaped:
        """Look once; the schedule comes again."""
        reaped: Reaped = await workflow.execute_activity(
            "reap",
            order,
            result_type=Reaped,
            start_to_close_timeout=timedelta(minutes=10),
            schedule_to_close_timeout=timedelta(hours=1),
            retry_policy=_RETRY,
        )
        note(reaped.kept, reaped.kept_bytes)
        workflow.set_current_details(reaped.model_dump_json(indent=1))
        return reaped
