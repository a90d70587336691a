"""Options shared by several commands: values of placeholders, and the permission for older rows to win."""

from typing import Annotated

import typer

from sluice.command_line import OVER_YOUNGER

ScheduledFor = Annotated[str, typer.Option("--scheduled-for", metavar="TIME", help="The value of {{ scheduled_for }}.")]
Partition = Annotated[str, typer.Option("--partition", metavar="PARTITION", help="The value of {{ partition }}.")]
OLDER_ROWS_WIN = f"The loaded rows replace younger rows ({OVER_YOUNGER})."
"""Message printed before a start with this permission."""
ROWS_MAY_REPEAT = f"The table may already contain the requeued rows, corrected ({OVER_YOUNGER})."
"""Message printed before a requeue with this permission, if the requeue adds rows."""
OverYounger = Annotated[
    bool, typer.Option(OVER_YOUNGER, help="Load rows that are older than those on main: the older rows win.")
]
