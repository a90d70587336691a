"""The history of a table on the page: publications, rows over time, and freshness."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from runtime.run.listed_run import ListedRun
from runtime.schedules.list_schedules import ListedSchedule
from sluice.contracts.arrivals import ZoneStatus
from sluice.contracts.run import RunResult
from sluice.contracts.schedules import MissedStarts, StartScheduledInput
from sluice.contracts.starting import PipelineText
from sluice.contracts.table_changes import TableChange
from web.lake.freshness import table_freshness
from web.lake.history import Publication, publications, rows_plot
from web.pipeline.views import list_pipelines

TEXT = PipelineText(name="orders.yml", text="", folder="")
AT = datetime(2026, 11, 22, 7, 45, tzinfo=timezone.utc)


def listed(number: int) -> ListedRun:
    closed = AT + timedelta(days=number)
    return ListedRun(f"orders-{number}", f"r{number}", "orders", "completed", "published", AT, closed, ["t.orders"], "")


def result(rows: int | None, *, main_after: str | None = "ab12", table: str = "t.orders") -> RunResult:
    change = TableChange(operation="append", added_rows=3, total_rows=rows)
    return RunResult(run_id="r", workflow_id="w", pipeline="orders", main_after=main_after, tables={table: change})


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


NOW = AT + timedelta(days=10)
SINCE = MissedStarts()
SCHEDULE = ListedSchedule(
    given=StartScheduledInput(installation="i", name="orders", pipeline=TEXT, zone="UTC"),
    last=NOW - timedelta(hours=1), state="failed", ended=None, next=NOW, missed=SINCE, missed_since_last=SINCE,
    paused=None,
)  # fmt: skip
ZONE = ZoneStatus(
    name="orders", pipeline=TEXT, batches=[], paused="", problem="", counts={}, latest_arrival=None, next_look="",
    expect=86400.0,
)  # fmt: skip


def reason(runs: list[ListedRun], schedules: list[ListedSchedule] | None = None, zone: ZoneStatus | None = None) -> str:
    known = table_freshness(runs, schedules or [], [zone] if zone else [], NOW)
    return known["t.orders"].reason


def test_the_freshness_of_a_table_follows_from_the_pipelines_that_write_it() -> None:
    daily = [listed(number) for number in range(9)]
    assert reason(daily) == "usually every 24 h, last 48 h ago"
    assert reason(daily, [SCHEDULE]).startswith("late by 60 min: the run of orders scheduled for")
    assert reason(daily, [], ZONE).startswith("late by 24 h: the landing zone of orders expects")
    other = replace(SCHEDULE, given=SCHEDULE.given.model_copy(update={"name": "others"}))
    paused = ZONE.model_copy(update={"paused": "by ana"})
    assert reason(daily, [other, replace(SCHEDULE, paused="")], paused) == "usually every 24 h, last 48 h ago"


def test_a_table_that_its_pipeline_no_longer_writes_is_not_late() -> None:
    moved = replace(listed(9), tables=["t.orders_2", "t.orders_2__quarantine"])
    known = table_freshness([listed(0), moved, moved], [], [], NOW)
    assert list(known) == ["t.orders_2"] and known["t.orders_2"].published == moved.closed


def test_pipelines_are_those_with_a_run_and_those_that_are_deployed() -> None:
    runs = [replace(listed(2), tables=["t.new"]), listed(1), replace(listed(0), pipeline="by_hand")]
    deployed = replace(SCHEDULE, given=SCHEDULE.given.model_copy(update={"name": "new"}))
    shown = list_pipelines(runs, [SCHEDULE, deployed], [ZONE])
    assert [(each.name, each.tables) for each in shown] == [
        ("by_hand", ["t.orders"]), ("new", []), ("orders", ["t.new"]),
    ]  # fmt: skip
    assert [each.run_id for each in shown[2].latest] == ["r1", "r2"]
    assert [each.schedule for each in shown] == [None, deployed, SCHEDULE] and shown[2].zone == ZONE
