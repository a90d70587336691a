"""Schedules of pipelines on Temporal: those that are deployed, and those that files state."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.schedules import SET_MEMO, StartScheduledInput
from sluice.contracts.starting import PipelineText
from sluice.deployment.files import PipelineFile
from sluice.deployment.plan import Change, DeployedItem, DeploySet, wanted_item
from sluice.errors import InvalidPipeline
from sluice.identifiers import schedule_id
from sluice.pipeline import schedule as pipeline_schedule
from sluice.pipeline.cron import Range, parse_cron
from sluice.setting_groups import InstallationSettings
from workflows.schedules.start_scheduled import StartScheduled

_OTHERWISE = "changed in Temporal"


class DeployedSchedules:
    """The schedules of one installation, as a kind of thing that `deploy` applies."""

    kind = "schedule"

    def __init__(
        self, client: Client, settings: InstallationSettings, deployed: DeploySet, working_directory: Path
    ) -> None:
        self._client, self._settings, self._deployed = client, settings, deployed
        self._working_directory = str(working_directory)

    def wanted(self, file: PipelineFile) -> DeployedItem | None:
        """Return the schedule that a file states, or None."""
        if file.pipeline.schedule is None:
            return None
        return wanted_item(
            self.kind,
            file,
            file.pipeline.schedule.properties(),
            self._deployed,
            working_directory=self._working_directory,
            task_queue=self._settings.sluice_task_queue,
        )

    async def present(self) -> list[DeployedItem]:
        """Return the deployed schedules of this installation."""
        return [
            _item(description, input) async for description, input in deployed_schedules(self._client, self._settings)
        ]

    async def apply(self, change: Change, file: PipelineFile | None) -> None:
        """Create, change or remove a schedule.

        Raises:
            InvalidPipeline: another deploy was faster.
        """
        name = schedule_id(self._settings.sluice_installation, change.item.pipeline)
        handle = self._client.get_schedule_handle(name)
        if change.action == "remove":
            await _delete(handle)
        elif file is not None:
            wanted = self._schedule(change.item, file)
            if change.action == "create":
                await self._create(name, wanted)
            else:
                await handle.update(lambda present: _updated(present, wanted))

    def _schedule(self, item: DeployedItem, file: PipelineFile) -> Schedule:
        stated = file.pipeline.schedule
        assert stated, "an item is made for files with a schedule"
        text = PipelineText(name=file.name, text=file.text, folder=self._working_directory)
        given = StartScheduledInput(
            installation=self._settings.sluice_installation,
            name=item.pipeline,
            pipeline=text,
            zone=stated.zone,
            pause_on_failure=stated.pause_on == "failure",
            set_name=item.set_name,
            deployed_from=item.folder,
            properties=item.properties,
        )
        return make_schedule(stated, given, self._settings.sluice_task_queue)

    async def _create(self, name: str, wanted: Schedule) -> None:
        try:
            await self._client.create_schedule(name, wanted, memo={SET_MEMO: self._deployed.name})
        except ScheduleAlreadyRunningError as error:
            raise InvalidPipeline(f"the schedule {name} was made by another deploy meanwhile: deploy again") from error


def make_schedule(stated: pipeline_schedule.Schedule, given: StartScheduledInput, task_queue: str) -> Schedule:
    """Return the schedule of a pipeline in Temporal's form."""
    name = schedule_id(given.installation, given.name)
    return Schedule(
        action=ScheduleActionStartWorkflow(StartScheduled.run, given, id=name, task_queue=task_queue),
        spec=_spec(stated),
        policy=_policy(stated),
    )


async def deployed_schedules(
    client: Client, settings: InstallationSettings
) -> AsyncIterator[tuple[ScheduleDescription, StartScheduledInput]]:
    """Yield each deployed schedule of this installation, with the input of the workflow that it starts."""
    installation = settings.sluice_installation
    names = sorted([each.id async for each in await client.list_schedules()])
    for name in names:
        if not name.startswith(schedule_id(installation, "")):
            continue
        try:
            described = await client.get_schedule_handle(name).describe()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:  # removed meanwhile
                raise
            continue
        given = await _input(client, described)
        if given.installation == installation:  # another installation's id may begin like this one's
            yield described, given


async def find_deployed(
    client: Client, settings: InstallationSettings, pipeline: str
) -> tuple[StartScheduledInput, str] | None:
    """Return the deployed schedule of a pipeline: the input of the workflow that it starts, and its task queue."""
    try:
        described = await client.get_schedule_handle(schedule_id(settings.sluice_installation, pipeline)).describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return None
    given, action = await _input(client, described), described.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    is_own = (given.installation, given.name) == (settings.sluice_installation, pipeline)
    return (given, action.task_queue) if is_own else None


async def _input(client: Client, described: ScheduleDescription) -> StartScheduledInput:
    action = described.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    payloads = [each for each in action.args if isinstance(each, Payload)]
    decoded = await client.data_converter.decode(payloads, [StartScheduledInput])
    return StartScheduledInput.model_validate(decoded[0])


def _item(described: ScheduleDescription, given: StartScheduledInput) -> DeployedItem:
    properties, state = given.properties, described.schedule.state
    stated = pipeline_schedule.Schedule.model_validate(
        {key: properties[key] for key in ("cron", "zone", "overlap", "catch_up")}
    )
    if (described.schedule.spec, described.schedule.policy) != (_spec(stated), _policy(stated)):
        properties = {**properties, _OTHERWISE: "times or policies"}
    return DeployedItem(
        DeployedSchedules.kind,
        given.name,
        given.pipeline.name,
        given.set_name,
        given.deployed_from,
        properties,
        (state.note or "") if state.paused else None,
    )


def _policy(stated: pipeline_schedule.Schedule) -> SchedulePolicy:
    window = timedelta(seconds=stated.catch_up)
    return SchedulePolicy(overlap=ScheduleOverlapPolicy[stated.overlap.upper()], catchup_window=window)


def _spec(stated: pipeline_schedule.Schedule) -> ScheduleSpec:
    """Return the times of a schedule as Temporal returns them."""
    fields = parse_cron(stated.cron)
    calendar = ScheduleCalendarSpec(
        second=_ranges((Range(0, 0),)),
        minute=_ranges(fields.minute),
        hour=_ranges(fields.hour),
        day_of_month=_ranges(fields.day_of_month),
        month=_ranges(fields.month),
        day_of_week=_ranges(fields.day_of_week),
    )
    return ScheduleSpec(calendars=[calendar], time_zone_name=stated.zone)


def _ranges(ranges: tuple[Range, ...]) -> tuple[ScheduleRange, ...]:
    return tuple(ScheduleRange(each.start, each.end, each.step) for each in ranges)


def _updated(present: ScheduleUpdateInput, wanted: Schedule) -> ScheduleUpdate:
    """Return the schedule as the file states it, except that a person's pause and its note stay."""
    kept = present.description.schedule
    return ScheduleUpdate(schedule=replace(kept, action=wanted.action, spec=wanted.spec, policy=wanted.policy))


async def _delete(handle: ScheduleHandle) -> None:
    try:
        await handle.delete()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
