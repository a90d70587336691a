"""A client of Temporal in memory: functions answer its short workflows, and all runs have one given request."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import PollerInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueResponse
from temporalio.client import Client, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError

from cli import context
from sluice.contracts.lake_query import SentLakeQuery
from sluice.contracts.run import RUN_WORKFLOW
from sluice.contracts.run_request import RunRequest
from tests.harness.activity import run_activity


def reach(monkeypatch: pytest.MonkeyPatch, client: object, installation: str = "") -> SimpleNamespace:
    """Connect commands in this process to a client. A test may replace the client of the returned connection."""
    reached = SimpleNamespace(client=client, installation=installation, hint="")
    monkeypatch.setattr(context, "connect_command", lambda _, read_only: asyncio.sleep(0, reached))
    return reached


def client_without_attributes() -> Client:
    """Return a client of a server that has none of Sluice's search attributes, for making requests."""

    async def list_search_attributes(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(custom_attributes={})

    service = SimpleNamespace(list_search_attributes=list_search_attributes)
    return cast(Client, SimpleNamespace(namespace="default", operator_service=service))


def polled_by(*workers: str) -> SimpleNamespace:
    """Return the workflow service of a server whose task queues these workers poll at present."""

    async def describe_task_queue(_: object) -> DescribeTaskQueueResponse:
        now = Timestamp()
        now.GetCurrentTime()
        return DescribeTaskQueueResponse(pollers=[PollerInfo(identity=each, last_access_time=now) for each in workers])

    return SimpleNamespace(describe_task_queue=describe_task_queue)


class LakeClient:
    """The part of a client that commands need for queries about the lake.

    `answers` has a function, such as an activity, for each kind of query and for each other workflow by its name.
    `request` is the request that every run was started with.
    """

    data_converter = pydantic_data_converter

    def __init__(self, answers: Mapping[str, Callable[..., Any]], request: RunRequest | None = None) -> None:
        self.answers, self._request = dict(answers), request

    def after(self, kind: str, happens: Callable[[], object]) -> None:
        """Let something happen after each answer of a kind."""
        answer = self.answers[kind]

        def answer_and_go_on(given: object) -> object:
            result = run_activity(answer, given)
            happens()
            return result

        self.answers[kind] = answer_and_go_on

    async def start_workflow(self, run: Callable[..., Any], argument: Any, **_: object) -> SimpleNamespace:
        if isinstance(argument, SentLakeQuery):
            answer, given = self.answers[argument.query.kind], argument.query
        else:
            answer, given = self.answers[run.__qualname__.partition(".")[0]], argument

        async def result() -> object:
            try:
                answered = run_activity(answer, given)
                return await answered if inspect.isawaitable(answered) else answered
            except ApplicationError as error:
                raise WorkflowFailureError(cause=error) from error

        return SimpleNamespace(result=result)

    def get_workflow_handle(self, workflow_id: str, run_id: str | None = None, **_: object) -> SimpleNamespace:
        async def fetch_history_events(**_: object) -> AsyncIterator[HistoryEvent]:
            event = HistoryEvent()
            payloads = await self.data_converter.encode([self._request])
            started = event.workflow_execution_started_event_attributes
            started.workflow_type.name = RUN_WORKFLOW
            started.input.payloads.extend(payloads)
            yield event

        return SimpleNamespace(fetch_history_events=fetch_history_events)
