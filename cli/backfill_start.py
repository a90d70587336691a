"""What a person asks for with `backfill FILE`: which partitions, how many at a time, and what each would load."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from cli.context import CommandContext, current_user, make_console
from cli.layout import print_rows
from runtime.backfill_plan import (
    PlannedPartition,
    check_partitions,
    check_together,
    plan_partition,
    read_backfill_pipeline,
)
from runtime.backfills import read_backfill
from sluice.campaigns.ending import not_published
from sluice.campaigns.partitions import parse_partitions
from sluice.contracts.backfill import BackfillInput, CampaignState, JointPublish
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.sizes import format_count, format_size

_NOT_TOGETHER = (
    "--publish together needs main to remember each file: the pipeline has no `write.source`, or a program of its own, "
    "so its partitions are published each by itself"
)

_ONE_BRANCH = (
    "--publish together needs a catalog in which runs can publish to another branch than main: with CATALOGUE=iceberg "
    "each partition is published by itself"
)


@dataclass(frozen=True)
class StartBackfill:
    """A backfill that is asked for."""

    file: Path
    partitions: str
    only: Literal["failed", "missing"] | None
    concurrency: int
    stop_after: int
    publish: Literal["each", "together"]
    again: bool

    @cached_property
    def _stated(self) -> PipelineText:
        return read_backfill_pipeline(self.file, Path.cwd())

    def prepare(self) -> BackfillInput:
        """Validate what is asked for; without --partitions, `select` names them.

        Raises:
            InvalidPipeline: it is not valid.
        """
        if self.again and self.only:
            raise InvalidPipeline("--again publishes what was published before, and --only leaves it out: give one")
        if not self.partitions and self.only != "failed":
            raise InvalidPipeline("give the partitions, as in --partitions 2018-01..2020-12")
        partitions = parse_partitions(self.partitions) if self.partitions else []
        # Without partitions any one renders the name, which has no placeholder.
        pipeline = check_partitions(self._stated, partitions or ["2000-01-01"])
        if self.only == "missing" and pipeline.write.traits.may_repeat:
            raise InvalidPipeline(f"main does not remember what `mode: {pipeline.write.mode}` wrote: leave out --only")
        is_together = self.publish == "together"
        if is_together and (pipeline.write.source is None or not pipeline.write.built_in):
            raise InvalidPipeline(_NOT_TOGETHER)
        if is_together and partitions:
            check_together(self._stated, partitions)
        starter = current_user()
        campaign = CampaignState(partitions=partitions, window=self.concurrency, stop_after=self.stop_after)
        return BackfillInput(
            pipeline=self._stated,
            name=pipeline.name,
            starter=starter.name,
            again=self.again,
            campaign=campaign,
            together=JointPublish() if is_together else None,
            keep=pipeline.keep,
        )

    async def select(self, context: CommandContext, given: BackfillInput) -> BackfillInput:
        """Return what is to be started: with `--only failed`, what the last backfill did not bring to main.

        Raises:
            InvalidPipeline: there was none, or the pipeline is not valid for a partition of it.
        """
        if given.together and context.settings.catalogue == "iceberg":
            raise InvalidPipeline(_ONE_BRANCH)
        if self.only != "failed":
            return given
        last = await read_backfill(context.client, context.settings, given.name)
        wanted = given.campaign.partitions
        partitions = [name for name in not_published(last) if not wanted or name in wanted]
        if partitions:
            check_partitions(self._stated, partitions)
        if partitions and given.together:
            check_together(self._stated, partitions)
        campaign = given.campaign.model_copy(update={"partitions": partitions})
        return given.model_copy(update={"campaign": campaign})

    def print_plan(self, partitions: Sequence[str], as_json: bool) -> None:
        """Print what each partition would load now."""
        planned = [plan_partition(self._stated, partition) for partition in partitions]
        if as_json:
            print(json.dumps({"partitions": [asdict(each) for each in planned], "concurrency": self.concurrency}))
            return
        console = make_console()
        print_rows(console, ("partition", "files", "bytes", "problem"), [_row(each) for each in planned])
        files, size = sum(each.files or 0 for each in planned), sum(each.bytes for each in planned)
        total = f"{format_count(len(planned), 'partition')}, {format_count(files, 'file')}, {format_size(size)}"
        console.print(f"{total}, {self.concurrency} at a time. Nothing was started.", highlight=False)


def _row(planned: PlannedPartition) -> tuple[str, str, str, str]:
    if planned.files is None:
        return planned.partition, "", "", planned.problem
    return planned.partition, f"{planned.files:,}", format_size(planned.bytes), planned.problem
