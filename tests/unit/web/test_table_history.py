"""The history of a table on the page: verdicts by run, publications, and rows over time."""

from datetime import datetime, timedelta, timezone

from runtime.run.listed_run import ListedRun
from sluice.contracts.lake_queries import QueryRows
from sluice.contracts.run import RunResult
from sluice.contracts.write import TableChange
from web.lake.history import Publication, heat_map, publications, rows_plot, verdicts_query

AT = datetime(2026, 11, 22, 7, 45, tzinfo=timezone.utc)


def listed(number: int) -> ListedRun:
    closed = AT + timedelta(days=number)
    return ListedRun(f"orders-{number}", f"r{number}", "orders", "completed", "published", AT, closed, ["t.orders"], "")


def result(rows: int | None, *, main_after: str | None = "ab12", table: str = "t.orders") -> RunResult:
    change = TableChange(operation="append", added_rows=3, total_rows=rows)
    return RunResult(run_id="r", workflow_id="w", pipeline="orders", main_after=main_after, tables={table: change})


def test_the_query_quotes_the_name_of_the_table() -> None:
    assert "table_name = 't.o''rders'" in verdicts_query("t.o'rders")


def test_a_heat_map_has_a_cell_for_each_check_in_each_run() -> None:
    columns = ["run_id", "workflow_id", "ended", "outcome", "check", "about", "verdict", "observed"]
    first, second = (
        ["r1", "w", "2026-11-22T07:45:00+00:00", "published"],
        ["r2", "w", "2026-11-23T07:45:00+00:00", "quarantined"],
    )
    rows = [
        [*first, "not_null", "id", "pass", "0"],
        [*second, "not_null", "id", "fail", "3"],
        [*second, "unique", "id", "error", ""],
    ]
    shown = heat_map(QueryRows(columns=columns, rows=rows))
    assert [outcome for _, _, outcome in shown.runs] == ["published", "quarantined"]
    assert {name: [each.look for each in cells] for name, cells in shown.checks} == {
        "not_null(id)": ["passed", "failed"],
        "unique(id)": ["notrun", "unanswered"],
    }
    assert shown.checks[0][1][1].title == "2026-11-23 07:45 UTC: failed, observed 3"


def test_a_publication_moved_main_and_changed_the_table() -> None:
    results = [
        (listed(3), result(9)),
        (listed(2), result(6, main_after=None)),
        (listed(1), result(3, table="t.others")),
        (listed(0), None),
    ]
    assert [each.run.run_id for each in publications("t.orders", results)] == ["r3"]


def test_the_plot_has_a_point_for_each_known_number_of_rows() -> None:
    def published(*rows: int | None) -> list[Publication]:
        results = [(listed(number), result(each)) for number, each in enumerate(rows)]
        return publications("t.orders", results[::-1])

    plot = rows_plot(published(10, None, 5, 20))
    assert plot is not None
    assert [y for _, y, _ in plot.points] == [50.0, 72.5, 5.0]
    assert [x for x, _, _ in plot.points] == [2.0, 66.0, 98.0]
    assert plot.highest == 20
    assert rows_plot(published(10)) is None
    empty = rows_plot(published(0, 0))
    assert empty is not None and {y for _, y, _ in empty.points} == {95.0}
