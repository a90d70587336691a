"""The command `files`: list the files that runs loaded, with time, run and table."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.context import CommandContext, run_command
from cli.layout import print_entries
from cli.options import AsJson
from runtime.pipeline.pipeline_input import identify_paths
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult
from sluice.times import format_time

_ID_DIGITS = 12


def files(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files or patterns. A file on this machine is also found by its content.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Only files of this table.")] = None,
    run: Annotated[str | None, typer.Option(help="Only files of this run (its id or workflow id) or pipeline.")] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of files to show, newest first.", min=1, max=5000)] = 100,
    as_json: AsJson = False,
) -> None:
    """List the files that runs loaded, with their tables and outcomes. This needs a worker."""

    def prepare() -> ListFilesInput:
        named, identities = identify_paths(paths or [], Path.cwd())
        return ListFilesInput(paths=named, identities=identities, table=table, run=run, limit=limit)

    async def command(context: CommandContext, query: ListFilesInput) -> int:
        listed = await query_lake(context.client, context.settings.installation, query, ListFilesResult)
        if as_json:
            print(listed.model_dump_json())
            return 0
        _print(context, listed)
        return 0

    run_command(command, as_json, prepare, read_only=True)


def _print(context: CommandContext, listed: ListFilesResult) -> None:
    console = context.console
    names = ["file", "table", "outcome", "run", "since", "commit"]
    rows = [
        [
            each.path,
            each.table,
            each.outcome,
            each.workflow_id or each.run_id,
            format_time(each.since),
            each.commit[:_ID_DIGITS],
        ]
        for each in listed.files
    ]
    if any(each.partition for each in listed.files):
        names.append("loaded for")
        rows = [[*row, each.partition] for row, each in zip(rows, listed.files, strict=True)]
    if rows:
        print_entries(console, names, rows, in_first_line=1)
    else:
        console.print("No run loaded such a file.")
    if listed.total > len(listed.files):
        console.print(f"{listed.total - len(listed.files)} more: narrow the search, or raise --limit", highlight=False)
    for reason in listed.unknown:
        console.print(f"not known: {escape(reason)}", highlight=False, soft_wrap=True)
