"""Print the result of `check` and `plan`."""

from rich.console import Console
from rich.text import Text

from cli.layout import make_console, print_line
from cli.pipeline.check_pipeline import describe_result
from runtime.pipeline.pipeline_input import InspectedInput
from sluice.pipeline.model import Pipeline


def print_check(pipeline: Pipeline, inspected: InspectedInput, console: Console | None = None) -> None:
    """Print each sentence and each hint in lines of its own. A hint wraps next to its label."""
    console = console or make_console()
    for sentence in describe_result(pipeline, inspected):
        print_line(console, Text(), sentence)
    for hint in inspected.hints:
        print_line(console, Text("hint: "), hint)
