"""The command `rehearse`: plant a fault for each check of a pipeline, and show that the check stops the run."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli.context import CommandContext, current_user, run_command
from cli.layout import print_entries
from cli.options import AsJson
from cli.pipeline.values import Partition, ScheduledFor
from generation.rehearsal import RehearsalPlan, plan_rehearsal
from generation.rehearsed import (
    RehearsedCheck,
    Results,
    describe_rehearsal,
    not_planted,
    refused_good_rows,
    rehearsal_exit_code,
    rehearsed_batch,
)
from generation.requests import Request, checks_of
from runtime.pipeline.generated_files import LakeAnswers, Options, ask_worker, needs_lake, prepare_request
from runtime.pipeline.pipeline_input import load_pipeline
from runtime.pipeline.placeholder_values import placeholder_values
from runtime.pipeline.rehearsals import RehearsalRuns, check_rehearsable, head_of_main, rehearsal_folder
from runtime.pipeline.row_engine import DuckDBRows
from sluice.contracts.run import RunResult
from sluice.environment_files import read_environment
from sluice.pipeline.model import Pipeline
from sluice.sizes import format_count

_INTERRUPTED = "Interrupted: the run of the rehearsal was cancelled, and its branch is deleted. Main is as it was."
_STYLES = {"caught": "green", "not caught": "bold red", "refuses good rows": "bold red", "not rehearsed": "yellow"}


def rehearse(
    pipeline: Annotated[Path, typer.Argument(help="A pipeline file.")],
    rows: Annotated[
        int | None, typer.Option("-n", "--rows", min=1, help="Number of rows.", show_default="near 1000")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same rows.")] = 7,
    scheduled_for: ScheduledFor = "",
    partition: Partition = "",
    as_json: AsJson = False,
) -> None:
    """Plant a fault for each check on a branch that is deleted, and show that each check stops the run.

    Exit codes: 0 each check caught its fault, 3 one did not or refuses good rows, 4 some could not be rehearsed.
    """

    def prepare() -> Pipeline:
        values = placeholder_values(pipeline, scheduled_for, partition)
        loaded = load_pipeline(pipeline, read_environment(), Path.cwd(), values)
        check_rehearsable(loaded)
        return loaded

    async def command(context: CommandContext, loaded: Pipeline) -> int:
        before = await head_of_main(context.client, context.settings.installation)
        with context.console.status("making rows, and a fault for each check"):
            request = await _request(context, loaded, Options(rows, seed))
            plan = plan_rehearsal(request, DuckDBRows())
        with rehearsal_folder(context.settings.storage, loaded) as folder:
            runs = RehearsalRuns(context.client, context.settings, current_user(), loaded, request, plan, folder)
            context.interruption.message = _INTERRUPTED
            results, ended = await _run_all(context, runs, plan, loaded)
        after = await head_of_main(context.client, context.settings.installation)
        checks = [results[index] for index in range(len(plan.labels))]
        return _report(context, plan, checks, ended, (before, after))

    run_command(command, as_json, prepare)


async def _request(context: CommandContext, pipeline: Pipeline, options: Options) -> Request:
    answers = LakeAnswers()
    if needs_lake(pipeline):
        answers = await ask_worker(context.client, pipeline, read_environment())
    return prepare_request(pipeline, answers, options, datetime.now(timezone.utc))


async def _run_all(
    context: CommandContext, runs: RehearsalRuns, plan: RehearsalPlan, pipeline: Pipeline
) -> tuple[Results, list[RunResult]]:
    """Run the good rows, then each batch of faults. Return the result of each check, and the ended runs."""
    checks, results = checks_of(pipeline), not_planted(plan)
    if not plan.batches:
        return results, []
    with context.console.status("run 1: good rows, which every check must accept"):
        ended = [await runs.run(plan.good, 1)]
    if ended[0].outcome != "checked":
        refused = refused_good_rows(plan, runs.verdicts(ended[0])) or _all_failed(plan, ended[0])
        return {**results, **refused}, ended
    for number, batch in enumerate(plan.batches, 2):
        faults = format_count(len(batch.faults), "fault")
        with context.console.status(f"run {number} of {len(plan.batches) + 1}: {faults}"):
            ended.append(await runs.run(batch.rows, number))
        verdicts, reason = runs.verdicts(ended[-1]), f"the run ended {ended[-1].outcome}: {ended[-1].reason}"
        results = {**results, **rehearsed_batch(plan, batch, checks, verdicts, reason)}
    return results, ended


def _all_failed(plan: RehearsalPlan, result: RunResult) -> Results:
    """Return all checks as not rehearsed, since the run of the good rows ended before it gave verdicts."""
    why = f"the run of good rows ended {result.outcome}: {result.reason}"
    return {
        fault.index: RehearsedCheck(check=plan.labels[fault.index], result="not rehearsed", why=why)
        for batch in plan.batches
        for fault in batch.faults
    }


def _report(
    context: CommandContext,
    plan: RehearsalPlan,
    checks: list[RehearsedCheck],
    ended: list[RunResult],
    main: tuple[str, str],
) -> int:
    code, (before, after) = rehearsal_exit_code(checks), main
    if not context.as_json:
        rows = [(Text(_shown(each), _STYLES[each.result]), each.check, each.fault, each.why) for each in checks]
        print_entries(context.console, ("result", "check", "fault planted", "why"), rows, in_first_line=2)
    moved = f"main is unchanged, at {after[:16]}"
    if before != after:
        moved = f"others changed main meanwhile: from {before[:16]} to {after[:16]}"
    left = [each.branch for each in ended if each.branch]
    branches = f"the branch {', '.join(left)} is left" if left else "their branches are deleted"
    stopped = ", those with faults as discarded, which is how a rehearsal ends" if len(ended) > 1 else ""
    text = f"{describe_rehearsal(checks)}.\n{format_count(len(ended), 'run')} without a publication: {branches}; "
    fields = {
        "checks": [each.model_dump(mode="json") for each in checks],
        "rows": len(plan.good),
        "runs": [each.workflow_id for each in ended],
        "branches_left": left,
        "main_before": before,
        "main_after": after,
        "exit_code": code,
    }
    context.print_result(fields, f"{text}{moved}. `list` shows the runs{stopped}.")
    return code


def _shown(check: RehearsedCheck) -> str:
    return (
        "caught (warn)"
        if check.result == "caught" and check.verdict == "warn"
        else check.result.replace("not caught", "NOT CAUGHT")
    )
