"""The rows that a run changes, before anybody approves it."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from runtime.run.diffed_run import find_state
from runtime.short_workflow import query_lake
from sluice.contracts.table_diffs import DiffTablesInput, DiffTablesResult
from sluice.presentation.diffs import describe_schema_change, describe_states, main_moved
from sluice.roles import rows_refusal
from web.page import Page, ThePage
from web.run.hidden_rows import without_rows

router = APIRouter(include_in_schema=False)
_ROWS = 20
"""Number of rows of each kind that a page shows at first."""
_MOST_ROWS = 200
_LONGEST_KEY = 1_000


@router.get("/runs/{workflow_id}/{run_id}/diff")
async def diff(
    page: ThePage,
    workflow_id: str,
    run_id: str,
    table: str = "",
    key: Annotated[str, Query(max_length=_LONGEST_KEY)] = "",
    rows: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = _ROWS,
) -> HTMLResponse:
    """Show which rows a run adds, removes and changes."""
    result = await read_diff(page, run_id, table, key, rows)
    return page.render(
        "diff.html",
        "Runs",
        workflow_id=workflow_id,
        run_id=run_id,
        result=result,
        states=describe_states(result),
        moved=main_moved(result),
        schema={each.table: [describe_schema_change(one) for one in each.schema_changes] for each in result.tables},
        table=table,
        key=key,
        rows=rows,
        more_rows=min(rows * 5, _MOST_ROWS),
    )


async def read_diff(page: Page, name: str, table: str, key: str, rows: int) -> DiffTablesResult:
    """Return the diff of a run. Its rows are left out if the person may not see them.

    Raises:
        SluiceError: the run has nothing to compare, the key is wrong, or no worker answers.
    """
    state = await find_state(page.client, name)
    hidden = rows_refusal(state.show_rows, page.visitor.role)
    question = DiffTablesInput(
        what=state.name,
        head=state.head,
        table=table,
        key=[column.strip() for column in key.split(",") if column.strip()],
        known_keys=dict(state.keys),
        rows=0 if hidden else rows,
    )
    result = await query_lake(page.client, page.installation, question, DiffTablesResult)
    return without_rows(result, hidden) if hidden else result
