"""The options by which a person gives one run the values of its placeholders."""

from typing import Annotated

import typer

ScheduledFor = Annotated[
    str, typer.Option("--scheduled-for", metavar="TIME", help="The time that {{ scheduled_for }} stands for.")
]
Partition = Annotated[str, typer.Option("--partition", metavar="PARTITION", help="What {{ partition }} stands for.")]
