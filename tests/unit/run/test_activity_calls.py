"""The table of activity calls and the activities that the worker registers: the same names, inputs and results."""

from typing import Any

import pytest

from runtime.short_workflow import TIME_LIMIT
from sluice.contracts.lake_queries import RESULTS
from sluice.contracts.progress import ON_SPARK
from sluice.contracts.run_request import Policy
from tests.harness.registered_activities import registered, signature
from workflows.activity_call import ActivityCall, Kind, fairness_key
from workflows.activity_calls import ActivityCalls

OF_A_RUN = {"plan_joint_release"}
"""Calls of queries that a workflow makes for itself. No person at a terminal waits for them."""
CALLS = {name: call for name, call in vars(ActivityCalls).items() if isinstance(call, ActivityCall)}
QUERIES = [call for name, call in CALLS.items() if call.input in RESULTS and name not in OF_A_RUN]


async def test_every_call_is_of_a_registered_activity_and_every_activity_is_called() -> None:
    control, spark = await registered()
    activities = {name: (inputs, result) for name, inputs, result in map(signature, [*control, *spark])}
    calls = {call.name: ([call.input], call.result) for call in CALLS.values()}
    assert calls == activities


async def test_calls_on_the_queue_of_spark_are_those_of_its_workers() -> None:
    _, spark = await registered()
    assert {call.name for call in CALLS.values() if call.kind is Kind.SPARK} == {signature(each)[0] for each in spark}
    assert {signature(each)[0] for each in spark} == ON_SPARK


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_limited_in_time_or_in_tries(name: str) -> None:
    call = CALLS[name]
    assert call.total_timeout is not None or call.retry.maximum_attempts > 0
    assert call.name in CALLS, "the name of an activity is the name of one of its rows"


@pytest.mark.parametrize("call", QUERIES, ids=lambda call: call.name)
def test_a_query_ends_before_its_workflow_does(call: ActivityCall[Any, Any]) -> None:
    assert call.total_timeout is not None and call.total_timeout(Policy(), None) < TIME_LIMIT.total_seconds()


@pytest.mark.parametrize("name", OF_A_RUN)
def test_what_a_run_asks_for_outlasts_a_restart_of_the_catalog(name: str) -> None:
    call = CALLS[name]
    assert call.total_timeout and call.total_timeout(Policy(), None) >= 3600 and not call.retry.maximum_attempts


@pytest.mark.parametrize("name", ["list_quarantine", "plan_rollback"])
def test_a_query_whose_work_grows_has_minutes_for_one_try(name: str) -> None:
    assert CALLS[name].timeout(Policy(), None) >= 240


def test_pipelines_have_a_fairness_key_each_that_fits() -> None:
    long, longer = "p" * 90, "p" * 91
    assert fairness_key("nyc-flights") == "nyc-flights"
    assert fairness_key("") is None
    assert len({fairness_key(long), fairness_key(longer)}) == 2
    assert all(len(key.encode()) <= 64 for name in (long, longer) if (key := fairness_key(name)))


def test_what_follows_a_write_is_taken_before_other_writes() -> None:
    assert CALLS["write_table"].priority is None  # None stands for Temporal's default, 3
    first = {name for name, call in CALLS.items() if call.priority == 2}
    assert first == {"scan_branch", "quarantine_rows", "examine_spark", "checkpoint"}
