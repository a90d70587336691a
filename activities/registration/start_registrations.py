"""Start the registrations of a publication, one workflow each."""

from contextlib import suppress
from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from sluice.contracts.registration import (
    REGISTRATION_WORKFLOW,
    RegisterInput,
    Registration,
    StartRegistrationsInput,
    WaitingRun,
    event_registration_id,
    table_registration_id,
)
from sluice.registration.target_kinds import EventTarget
from sluice.registration.targets import Targets

_MAX_SHOWN = 200
"""Maximum number of registrations in the report of a run. The others are started, too."""


@dataclass(frozen=True)
class StartRegistrationsActivity:
    """The activity `start_registrations`.

    Needs Temporal's client, the targets of the installation, its id, and the task queue of registrations.
    """

    client: Client
    targets: Targets
    installation: str
    task_queue: str

    @activity.defn(name="start_registrations")
    async def start_registrations(self, input: StartRegistrationsInput) -> list[Registration]:
        """Start a workflow for each registration, or signal the running one. A repeat starts nothing twice."""
        run = WaitingRun(workflow_id=input.event.workflow_id, run_id=input.event.run_id)
        names = self.targets.of_publication(input.targets, input.event.tables)
        return [each for name in names for each in await self._start(name, input, run)][:_MAX_SHOWN]

    async def _start(self, name: str, input: StartRegistrationsInput, run: WaitingRun) -> list[Registration]:
        target = self.targets.targets.get(name)
        if target is None:
            why = "the installation has no such target: add it to the file that SLUICE_TARGETS_FILE names"
            return [Registration(target=name, state="failed", reason=why)]
        if isinstance(target, EventTarget):
            return [await self.start_event(name, input, run)]
        tables = target.tables_of(input.event.tables, is_named=name in input.targets)
        return [await self.start_table(name, table, run) for table in tables]

    async def start_event(self, name: str, input: StartRegistrationsInput, run: WaitingRun) -> Registration:
        """Start the workflow that sends a publication to one target.

        The target gets the publication once, even if an earlier try of this activity started the workflow.
        """
        workflow_id = event_registration_id(self.installation, name, input.event.run_id)
        once = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
        with suppress(WorkflowAlreadyStartedError):  # an earlier one has completed
            await self._signal(workflow_id, RegisterInput(target=name, event=input.event), run, once)
        return Registration(target=name, workflow_id=workflow_id)

    async def start_table(self, name: str, table: str, run: WaitingRun) -> Registration:
        """Start the workflow that points one table of one target at main's current version, or signal it."""
        workflow_id = table_registration_id(self.installation, name, table)
        often = WorkflowIDReusePolicy.ALLOW_DUPLICATE
        await self._signal(workflow_id, RegisterInput(target=name, table=table), run, often)
        return Registration(target=name, table=table, workflow_id=workflow_id)

    async def _signal(
        self, workflow_id: str, input: RegisterInput, run: WaitingRun, reuse: WorkflowIDReusePolicy
    ) -> None:
        await self.client.start_workflow(
            REGISTRATION_WORKFLOW,
            input,
            id=workflow_id,
            task_queue=self.task_queue,
            id_reuse_policy=reuse,
            start_signal="register",
            start_signal_args=[run],
            static_summary=f"{input.target}: {input.table or (input.event.pipeline if input.event else '')}",
        )
