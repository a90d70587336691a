"""The command `deploy`: apply the schedules and landing zones of a folder of pipeline files."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.context import CommandContext, run_command
from cli.layout import visible
from cli.options import AsJson
from runtime.installation.identity import with_known_installation
from runtime.schedules.deploy import Deploy, make_set, plan_deploy, read_folder
from sluice.deployment.files import PipelineFile
from sluice.deployment.plan import Change
from sluice.errors import InvalidPipeline
from sluice.input.repeated_loads import hints_on_repeated_loads
from sluice.presentation.schedules import describe_pause

_SIGNS = {"create": "+", "change": "~", "remove": "-", "unchanged": " "}


def deploy_command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder: all its pipeline files, and those below it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Apply the plan without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and apply nothing.")] = False,
    set_name: Annotated[
        str, typer.Option("--set", metavar="NAME", help="The name of this set of files; by default the folder's.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Apply the schedules and landing zones that the pipeline files of a folder state. Shows a plan first."""

    async def command(context: CommandContext, files: list[PipelineFile]) -> int:
        settings = with_known_installation(context.settings)
        deploy = await plan_deploy(context.client, settings, files, make_set(folder, set_name), Path.cwd())
        _print_plan(context, deploy, len(files))
        applies = deploy.has_work and not dry_run
        if applies:
            if not yes:
                _ask(as_json)
            await deploy.apply()
        fields = {"changes": [_fields(change) for change in deploy.changes], "files": len(files), "applied": applies}
        context.print_result(fields, _conclusion(deploy, applies))
        return 0

    run_command(command, as_json, lambda: read_folder(folder), read_only=dry_run)


def _print_plan(context: CommandContext, deploy: Deploy, files: int) -> None:
    console = context.console
    starts = f"{_scheduled(deploy)} with a schedule or a landing zone"
    console.print(f"{files} pipeline file{'s' * (files != 1)}, {starts}:")
    for change in deploy.changes:
        item = change.item
        paused = "" if change.paused is None else f" (paused, and stays so: {describe_pause(change.paused)})"
        where = f" of {item.folder}" if change.action == "remove" else ""
        line = f"{_SIGNS[change.action]} {change.action} {item.kind} {item.pipeline} ({item.file}{where}){paused}"
        details = change.differences if change.action == "change" else []
        if change.action == "create":
            details = [f"{key}: {value}" for key, value in item.properties.items()]
        file = deploy.files.get(item.pipeline)
        hints = hints_on_repeated_loads(file.pipeline) if file and change.is_work else []
        hints += [change.hint] if change.hint else []
        for text in [line, *(f"    {detail}" for detail in details), *(f"    hint: {hint}" for hint in hints)]:
            console.print(visible(text), highlight=False, soft_wrap=True)


def _scheduled(deploy: Deploy) -> int:
    return len([change for change in deploy.changes if change.action != "remove"])


def _ask(as_json: bool) -> None:
    """Ask a person to confirm the plan.

    Raises:
        InvalidPipeline: nobody can be asked, or the answer is no.
    """
    if as_json or not sys.stdin.isatty():
        raise InvalidPipeline(
            "nothing was applied: without a terminal, or with --json, the command cannot ask. Add --yes to apply this "
            "plan"
        )
    if not typer.confirm("Apply this plan?", err=True):
        raise InvalidPipeline("nothing was applied")


def _conclusion(deploy: Deploy, applied: bool) -> str:
    if not deploy.has_work:
        return "There is nothing to do."
    return "Applied." if applied else "Nothing was applied."


def _fields(change: Change) -> dict[str, Any]:
    item = change.item
    return {
        "action": change.action,
        "kind": item.kind,
        "pipeline": item.pipeline,
        "file": item.file,
        "set": item.set_name,
        "properties": item.properties,
        "differences": change.differences,
        "paused": change.paused,
        "hint": change.hint,
    }
