"""The workflow of a landing zone on a real Temporal server, with listings and runs that the test answers."""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.arrivals import (
    BatchPaths,
    BatchRef,
    CollectArrivalsInput,
    CollectArrivalsResult,
    FinishArrivalsInput,
    FinishArrivalsResult,
    LandingZoneInput,
    ZoneNotice,
    ZoneStatus,
)
from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun, PipelineText, StartPipelineInput
from sluice.contracts.zone_requests import SplitBatchInput, SplitBatchResult
from tests.harness.waiting import until
from workflows.arrivals.landing_zone import LandingZone

TEXT = PipelineText(name="p.yml", text="name: p", folder="/")


@workflow.defn(name="StartPipeline", sandboxed=False)
class RunOfATest:
    """A run that ends when and as its test says."""

    def __init__(self) -> None:
        self._ended: EndedRun | None = None
        self._refusal = ""

    @workflow.run
    async def run(self, input: StartPipelineInput) -> list[str]:
        await workflow.wait_condition(lambda: self._ended is not None or bool(self._refusal))
        if self._refusal:
            raise ApplicationError(self._refusal, type="RefusedRequest", non_retryable=True)
        assert self._ended and input.report_to
        handle = workflow.get_external_workflow_handle(input.report_to)
        await handle.signal(RUN_ENDED_SIGNAL, self._ended.model_copy(update={"key": input.key}))
        await handle.signal(RUN_ENDED_SIGNAL, self._ended.model_copy(update={"key": input.key}))  # a repeated signal
        return input.files or []

    @workflow.signal
    def end(self, ended: EndedRun) -> None:
        self._ended = ended

    @workflow.signal
    def refuse(self, reason: str) -> None:
        """Fail as a start whose request the worker refuses."""
        self._refusal = reason


def batch(name: str) -> BatchRef:
    return BatchRef(id=name, location=f"lake/{name}.json", files=2, bytes=20)


class Zone:
    """A landing zone whose listings return what the test says."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, f"zone-{uuid.uuid4().hex[:8]}"
        self.answers: list[CollectArrivalsResult | Exception] = []
        self.listings: list[list[str]] = []
        self.received: list[str] = []
        self.named: list[list[str] | None] = []
        self.notices: list[str] = []
        self.finishes: list[list[str]] = []
        self.finish_answers: list[FinishArrivalsResult | Exception] = []
        self.pause_finish: asyncio.Event | None = None
        """An event that the tagging or moving of files waits for."""
        self.pause: asyncio.Event | None = None
        """An event that a listing waits for before it answers."""
        self.reads: list[str] = []
        self.held_read: asyncio.Event | None = None
        """An event that the reading of a batch waits for."""

    @activity.defn(name="collect_arrivals")
    async def collect(self, input: CollectArrivalsInput) -> CollectArrivalsResult:
        self.listings.append([ref.id for ref in input.held])
        self.received.append(input.received)
        self.named.append(input.files)
        if self.pause:
            await self.pause.wait()
        answer = self.answers.pop(0) if self.answers else CollectArrivalsResult()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @activity.defn(name="read_batch")
    async def read(self, input: BatchRef) -> BatchPaths:
        self.reads.append(input.id)
        if self.held_read:
            with suppress(asyncio.CancelledError):
                await self.held_read.wait()
        if input.id == "lost":
            raise ApplicationError("the batch is missing", type="ManifestUnreadable", non_retryable=True)
        return BatchPaths(paths=[f"/landing/{input.id}-{number}" for number in range(input.files)])

    @activity.defn(name="split_batch")
    async def split(self, input: SplitBatchInput) -> SplitBatchResult:
        assert input.pipeline == TEXT, "the activity refuses a split in modes that replace rows"
        halves = [input.ref.model_copy(update={"id": f"{input.ref.id}-{half}", "files": 1}) for half in range(2)]
        return SplitBatchResult(halves=halves)

    @activity.defn(name="finish_arrivals")
    async def finish(self, input: FinishArrivalsInput) -> FinishArrivalsResult:
        self.finishes.append([ref.id for ref in input.held])
        if self.pause_finish:
            await self.pause_finish.wait()
        answer = self.finish_answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @activity.defn(name="notify_landing_zone")
    async def notify(self, input: ZoneNotice) -> None:
        self.notices.append(input.text)
        raise ApplicationError("Slack is away", type="SlackRefused", non_retryable=True)

    async def start(self, **more: Any) -> WorkflowHandle[LandingZone, None]:
        queue = more.pop("task_queue", self.name)
        stated = {"look": 600, "at_once": 1, "on_failure": "continue", "name": "p", "installation": "here", **more}
        self.handle = await self.client.start_workflow(
            LandingZone.run, LandingZoneInput(pipeline=TEXT, **stated), id=self.name, task_queue=queue
        )
        return self.handle

    async def list_files(self, *answers: CollectArrivalsResult) -> None:
        """Notify the zone of an arrival; wait until it was listed."""
        listings = len(self.listings)
        self.answers += answers
        await self.handle.signal(LandingZone.look)
        await self.until(lambda _: len(self.listings) > listings)

    async def end(self, name: str, outcome: str, tries: int = 1, **more: Any) -> None:
        run = await self.run_of(name, tries)
        await run.signal("end", EndedRun.model_validate({"outcome": outcome, "workflow_id": "p-1", **more}))
        await run.result()

    async def run_of(self, name: str, tries: int = 1) -> WorkflowHandle[Any, Any]:
        """Return the workflow that runs a batch, once it exists.

        The zone counts a batch as running before its run has started.
        """
        handle = self.client.get_workflow_handle(f"{self.name}-{name}-{tries}")
        await until(lambda: is_known(handle), lambda: f"{handle.id} was not started")
        return handle

    async def status(self) -> ZoneStatus:
        return await self.handle.query(LandingZone.status)

    async def states(self) -> dict[str, str]:
        return {each.ref.id: each.state for each in (await self.status()).batches}

    async def until_notified(self, text: str) -> None:
        await until(
            lambda: any(text in notice for notice in self.notices), lambda: f"{text!r} is not among {self.notices}"
        )

    async def until(self, condition: Callable[[dict[str, str]], bool]) -> None:
        async def reached() -> bool:
            return condition(await self.states())

        async def present() -> str:
            return f"{await self.status()}, listings: {self.listings}"

        await until(reached, present)


async def is_known(handle: WorkflowHandle[Any, Any]) -> bool:
    """Return True if a workflow exists."""
    try:
        await handle.describe()
    except RPCError as error:
        assert error.status == RPCStatusCode.NOT_FOUND, error
        return False
    return True


def arrived(*names: str, **more: Any) -> CollectArrivalsResult:
    return CollectArrivalsResult(batches=[batch(name) for name in names], **more)
