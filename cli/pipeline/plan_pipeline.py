"""The command `plan`: check a pipeline file, and show what its publish guarantees."""

from rich.text import Text

from cli.context import CommandContext, run_command
from cli.layout import print_line
from cli.options import AsJson
from cli.pipeline.check_pipeline import PipelineFile, inspect_file, result_fields
from cli.pipeline.sentences import print_check
from cli.pipeline.values import Partition, ScheduledFor
from runtime.pipeline.pipeline_input import InspectedInput
from runtime.pipeline.placeholder_values import order_of
from runtime.publishing.publish_plan import plan_publish
from sluice.pipeline.model import Pipeline
from sluice.presentation.changes import describe_guarantee


def plan_pipeline(
    pipeline: PipelineFile = None, scheduled_for: ScheduledFor = "", partition: Partition = "", as_json: AsJson = False
) -> None:
    """Check a pipeline file as `check` does, and ask a worker what its publish guarantees. This runs nothing."""

    async def command(context: CommandContext, prepared: tuple[Pipeline, InspectedInput]) -> int:
        order = order_of(pipeline, scheduled_for, partition)
        plan = await plan_publish(context.client, context.settings.installation, prepared[0], order=order)
        context.print_result({**result_fields(*prepared), "guarantee": plan.guarantee}, "")
        if not context.as_json:
            print_check(*prepared, context.console)
            print_line(context.console, Text(), f"Guarantee: {describe_guarantee(plan.guarantee)}.")
        return 0

    run_command(command, as_json, lambda: inspect_file(pipeline, scheduled_for, partition), read_only=True)
