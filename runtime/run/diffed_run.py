"""Find the branch or the commit on main that shows the rows of a run, and the keys that its pipeline states."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from temporalio.client import Client

from runtime.run.find_run import RunFilter, RunLookup, describe_run, find_run, list_runs, read_result
from runtime.run.reported_run import read_status
from runtime.run.run_request import read_request
from sluice.contracts.run_request import RunRequest
from sluice.contracts.table_diffs import TableKey
from sluice.diff.keys import pipeline_keys
from sluice.errors import InvalidPipeline
from sluice.identifiers import run_of
from sluice.roles import ShowRows


@dataclass(frozen=True)
class NamedState:
    """A branch or a commit on main, as a person named it or its run."""

    name: str
    head: str = ""
    """Hash of the branch to compare; empty means its newest."""
    keys: dict[str, TableKey] = field(default_factory=dict)
    """Keys of the tables of its run, as far as they are known."""
    show_rows: ShowRows | None = None
    """People who may see its rows on the page, as the pipeline of its run says; None if it is not known."""


async def find_state(client: Client, named: str) -> NamedState:
    """Return the state that a run wrote or published, or the name itself if Temporal has no such run.

    Raises:
        InvalidPipeline: the run has left nothing to compare, or not yet written anything.
        ServiceUnavailable: no worker answers for a run that is under way.
    """
    run_id = run_of(named) or named.rsplit("/", 1)[-1]
    try:
        run = await find_run(client, run_id)
    except InvalidPipeline:
        return NamedState(named)
    run = run if "/" in named else await _with_rows(client, run, run_id)
    request = await read_request(client, run.handle.id, run.handle.run_id or "")
    keys = pipeline_keys(request.pipeline) if request else {}
    show_rows = request.pipeline.show_rows if request else None
    if "/" in named:
        return NamedState(named, keys=keys, show_rows=show_rows)
    name, head = await (_of_ended(client, run, request) if run.ended else _of_running(run))
    return NamedState(name, head, keys, show_rows)


async def _with_rows(client: Client, run: RunLookup, named: str) -> RunLookup:
    """Return the run that published, if a workflow id or a pipeline names a later run that had nothing to load."""
    result = await read_result(client, run.description) if run.ended else None
    if result is None or result.cause != "already_published" or named == run.handle.run_id:
        return run
    published = await list_runs(client, 1, RunFilter(state="published", workflow_ids=(run.handle.id,)))
    described = await describe_run(client, run.handle.id, published[0].run_id) if published else None
    return described or run


async def keys_of_runs(client: Client, run_ids: Iterable[str]) -> dict[str, TableKey]:
    """Return the keys that the pipelines of runs state, by table, as far as Temporal still has the runs."""
    keys: dict[str, TableKey] = {}
    for run_id in run_ids:
        with suppress(InvalidPipeline):
            run = await find_run(client, run_id)
            request = await read_request(client, run.handle.id, run.handle.run_id or "")
            keys |= pipeline_keys(request.pipeline) if request else {}
    return keys


async def _of_running(run: RunLookup) -> tuple[str, str]:
    """Return the branch of a run that is under way, and its audited hash, if there is one."""
    status = await read_status(run)
    if not status.result.branch or not status.result.tables:
        raise InvalidPipeline(f"{run.handle.id} has not written anything yet: it is {status.stage}")
    return status.result.branch, status.result.audited_hash or ""


async def _of_ended(client: Client, run: RunLookup, request: RunRequest | None) -> tuple[str, str]:
    """Return the commit that a run published, or the branch that it left."""
    result = await read_result(client, run.description)
    assert result is not None
    if result.outcome == "published" and request and request.target:
        raise InvalidPipeline(
            f"{result.workflow_id} was published to the branch {request.target} of a backfill: `diff {request.target}` "
            "shows what the backfill has collected"
        )
    name = result.main_after if result.outcome == "published" else result.branch
    if not name:
        raise InvalidPipeline(
            f"{result.workflow_id} ended {result.outcome}, and left no rows to compare"
            + (f": {result.reason}" if result.reason else "")
        )
    return name, ""
