"""The request of `backfill FILE`: its partitions, how many run at a time, and the plan of what each would load."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from rich.text import Text
from temporalio.client import Client
from temporalio.service import RPCError

from cli.context import CommandContext, current_user
from cli.exit_codes import WRONG_USE
from cli.layout import make_console, print_line, print_rows
from runtime.backfills.backfill_order import find_backfill_problem
from runtime.backfills.backfill_plan import (
    PlannedPartition,
    check_partitions,
    check_together,
    plan_partition,
    preview_partition,
    read_backfill_pipeline,
)
from runtime.backfills.backfills import read_backfill
from runtime.installation.reached_installation import connect_command
from sluice.backfills.ending import not_published
from sluice.backfills.partitions import parse_partitions
from sluice.contracts.backfill import BackfillInput, BackfillState, JointPublish
from sluice.contracts.starting import PipelineText
from sluice.environment_files import read_environment
from sluice.errors import BadEnvironment, InvalidPipeline, ServiceUnavailable
from sluice.pipeline.loading_order import out_of_order, partition_after_later, window_problem
from sluice.pipeline.loading_rules import Way, require_allowed
from sluice.pipeline.model import Pipeline
from sluice.presentation.type_preview import describe_preview
from sluice.setting_groups import InstallationSettings
from sluice.settings import read_settings
from sluice.sizes import format_count, format_size

_AT_ONCE = 4
"""Default number of partitions that run at a time, where their order does not matter."""
_ONE_BRANCH = (
    "--publish together needs a catalog in which runs can publish to another branch than main: with an Iceberg "
    "catalog the partitions are published one by one"
)


@dataclass(frozen=True)
class Comparison:
    """The result of the comparison of a backfill with main and the landing zones."""

    problem: str = ""
    """Reason why the start would be refused; empty if there is none."""
    not_compared: str = ""
    """Reason why nothing was compared; empty if it was."""


@dataclass(frozen=True)
class StartBackfill:
    """A requested backfill."""

    file: Path
    partitions: str
    only: Literal["failed", "missing"] | None
    concurrency: int | None
    """Number of partitions that run at a time; None for the default."""
    stop_after: int
    publish: Literal["each", "together"]
    again: bool
    over_younger: bool = False
    """True if partitions may be loaded that are older than the rows of main."""

    @cached_property
    def _stated(self) -> PipelineText:
        return read_backfill_pipeline(self.file, Path.cwd())

    def prepare(self) -> BackfillInput:
        """Validate the request. Without --partitions, `select` names the partitions later.

        Raises:
            InvalidPipeline: the request is not valid.
        """
        if self.again and self.only:
            raise InvalidPipeline("--again publishes what was published before, and --only leaves it out: give one")
        if not self.partitions and self.only != "failed":
            raise InvalidPipeline("give the partitions, as in --partitions 2018-01..2020-12")
        partitions = parse_partitions(self.partitions) if self.partitions else []
        # Without partitions, any date serves to render the pipeline's name: it has no placeholder.
        pipeline = check_partitions(self._stated, partitions or ["2000-01-01"])
        if self.only == "missing" and pipeline.write.traits.may_repeat:
            raise InvalidPipeline(
                f"main keeps no record of what `mode: {pipeline.write.mode}` loaded, so no partition is known to "
                "be missing: leave out --only"
            )
        is_together = self.publish == "together"
        way: Way = "backfill together" if is_together else "backfill each"
        keeps_order = require_allowed(way, pipeline.write, pipeline.tables).order == "one at a time"
        self._check_order(pipeline, partitions, keeps_order=keeps_order)
        if is_together and partitions:
            check_together(self._stated, partitions)
        starter = current_user()
        progress = BackfillState(
            partitions=partitions,
            window=self.concurrency or (1 if keeps_order else _AT_ONCE),
            in_order=keeps_order,
            stop_after=self.stop_after,
        )
        return BackfillInput(
            pipeline=self._stated,
            name=pipeline.name,
            starter=starter.name,
            again=self.again,
            over_younger=self.over_younger,
            progress=progress,
            together=JointPublish() if is_together else None,
            keep=pipeline.keep,
        )

    def _check_order(self, pipeline: Pipeline, partitions: Sequence[str], *, keeps_order: bool) -> None:
        """Check that no partition overtakes one whose rows it must not replace.

        Raises:
            InvalidPipeline: several partitions would run at a time, or an older one after a younger one.
        """
        if keeps_order and (self.concurrency or 1) > 1:
            raise InvalidPipeline(f"--concurrency {self.concurrency}: {window_problem(pipeline.write)}. Leave it out")
        if keeps_order and not self.over_younger and (pair := out_of_order(partitions)):
            older, younger = pair
            raise InvalidPipeline(partition_after_later(pipeline.write, older, f"{younger}, which is named before it"))

    async def select(self, context: CommandContext, given: BackfillInput) -> BackfillInput:
        """Return the backfill to start. With `--only failed`: the partitions that the last one did not publish.

        Raises:
            InvalidPipeline: there was no backfill, the pipeline is not valid for one of its partitions, or the catalog
                cannot publish partitions together.
        """
        if given.together and context.settings.catalog.is_iceberg:
            raise InvalidPipeline(_ONE_BRANCH)
        if self.only != "failed":
            return given
        last = await read_backfill(context.client, context.installation_with_id, given.name)
        wanted = given.progress.partitions
        partitions = [name for name in not_published(last) if not wanted or name in wanted]
        if partitions:
            check_partitions(self._stated, partitions)
        if partitions and given.together:
            check_together(self._stated, partitions)
        progress = given.progress.model_copy(update={"partitions": partitions})
        return given.model_copy(update={"progress": progress})

    def print_plan(self, given: BackfillInput, as_json: bool, compared: Comparison) -> int:
        """Print what each partition would load now. Return the exit code of wrong use if the start would fail."""
        partitions, at_once = given.progress.partitions, given.progress.window
        planned = [plan_partition(self._stated, partition) for partition in partitions]
        if as_json:
            fields = {"partitions": [asdict(each) for each in planned], "concurrency": at_once, **asdict(compared)}
            print(json.dumps(fields))
            return _code(planned, compared)
        console = make_console()
        print_rows(console, ("partition", "files", "bytes", "problem"), [_row(each) for each in planned])
        order = ", in this order" if given.progress.in_order else ""
        first = next((each.partition for each in planned if each.files), None)
        if first is not None and (types := describe_preview(*preview_partition(self._stated, first))):
            print_line(console, Text(f"{first}  ", style="dim"), types)
        console.print(f"{_total(planned)}, {at_once} at a time{order}. Nothing was started.", highlight=False)
        if wrong := sum(bool(each.problem) for each in planned):
            print_line(console, Text(), f"{format_count(wrong, 'partition')} of {len(planned):,} would fail.")
        if compared.problem:
            print_line(console, Text(), f"The start would be refused: {compared.problem}")
        if compared.not_compared:
            print_line(console, Text(), f"Not compared with main and landing zones: {compared.not_compared}")
        return _code(planned, compared)


def connect_and_compare(given: BackfillInput) -> Comparison:
    """Connect to Temporal, and compare a backfill with main and the landing zones."""

    async def connected() -> Comparison:
        environment = read_environment()
        reached = await connect_command(environment, read_only=True)
        settings = read_settings(environment).with_values(sluice_installation=reached.installation)
        if given.together and settings.catalog.is_iceberg:
            return Comparison(problem=_ONE_BRANCH)
        return await compare(reached.client, settings.installation, given)

    try:
        return asyncio.run(connected())
    except (ServiceUnavailable, BadEnvironment) as error:
        return Comparison(not_compared=str(error))


async def compare(client: Client, settings: InstallationSettings, given: BackfillInput) -> Comparison:
    """Compare a backfill with main and the landing zones."""
    try:
        return Comparison(problem=await find_backfill_problem(client, settings, given))
    except ServiceUnavailable as error:
        return Comparison(not_compared=str(error))
    except RPCError as error:
        return Comparison(not_compared=f"Temporal answered: {error}")


def _code(planned: Sequence[PlannedPartition], compared: Comparison) -> int:
    return WRONG_USE if compared.problem or any(each.problem for each in planned) else 0


def _total(planned: Sequence[PlannedPartition]) -> str:
    """Return the totals of partitions, files and bytes; a file that several partitions load counts once."""
    with_files = [each for each in planned if each.files]
    sources = {tuple(each.paths): each for each in with_files}
    files, size = sum(each.files or 0 for each in sources.values()), sum(each.bytes for each in sources.values())
    total = f"{format_count(len(planned), 'partition')}, {format_count(files, 'file')}, {format_size(size)}"
    if len(sources) == len(with_files):
        return total
    is_same = len(sources) == 1 and len(with_files) == len(planned)
    return f"{total}: {'the same for each partition' if is_same else 'several partitions load the same'}"


def _row(planned: PlannedPartition) -> tuple[str, str, str, str]:
    if planned.files is None:
        return planned.partition, "", "", planned.problem
    return planned.partition, f"{planned.files:,}", format_size(planned.bytes), planned.problem
