"""Options that several commands share."""

from enum import Enum
from typing import Annotated

import typer


class ReportFormat(str, Enum):
    """Forms of a report other than text and JSON."""

    md = "md"


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, and nothing else.")]
By = Annotated[str | None, typer.Option("--by", help="The person who decides.", show_default="you")]
Report = Annotated[
    ReportFormat | None,
    typer.Option("--report", help="Print the report to standard output in this form, and nothing else: md."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run as `list` shows it, or a pipeline for its latest run.")]
