"""Home and the list of runs, on a client of Temporal that the test answers for."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from runtime.run.listed_run import listed_run
from sluice.contracts.arrivals import ZoneStatus
from sluice.contracts.run import RunResult, RunStatus, Stage
from sluice.contracts.starting import PipelineText
from tests.harness.asgi import Answer
from tests.harness.page import behind_proxy, browser
from tests.harness.waiting import in_time
from web.attention import Attention, AttentionReader
from web.timing import PageTiming

AUDITED = "ab" * 32


async def _nothing() -> dict[str, Any]:
    return {}


def execution(number: int, outcome: str = "", *, is_running: bool = False) -> Any:
    """Return a run as Temporal lists it. One without an outcome was terminated."""
    ended = WorkflowExecutionStatus.COMPLETED if outcome else WorkflowExecutionStatus.TERMINATED
    now = datetime.now(timezone.utc)
    return SimpleNamespace(
        id=f"p-{number:012x}",
        run_id=f"run-{number}",
        status=WorkflowExecutionStatus.RUNNING if is_running else ended,
        start_time=now - timedelta(minutes=number),
        close_time=None if is_running else now - timedelta(minutes=number - 1),
        search_attributes={"SluiceOutcome": [outcome]} if outcome else {},
        memo=_nothing,
    )


class Page:
    """One page of a list, as the client of Temporal returns it."""

    def __init__(self, runs: Sequence[Any], token: bytes | None, error: RPCError | None) -> None:
        self._runs, self.next_page_token, self._error = runs, token, error
        self.current_page: Sequence[Any] | None = None

    async def fetch_next_page(self) -> None:
        if self._error:
            raise self._error
        self.current_page = self._runs

    async def __aiter__(self) -> AsyncIterator[Any]:
        await self.fetch_next_page()
        for each in self._runs:
            yield each


class Temporal:
    """The part of a client that home and the list of runs need."""

    namespace = "default"

    def __init__(self, *runs: Any, token: bytes | None = None) -> None:
        self.runs, self.token = list(runs), token
        self.error: RPCError | None = None
        self.stage: Stage = "waiting for approval"
        self.deadline = ""
        self.events = 5
        """Number of events of each history."""
        self.queries = 0
        self.reason: str | None = None
        self.lists: list[tuple[str, bytes | None]] = []

    def list_workflows(self, query: str, next_page_token: bytes | None = None, **_: Any) -> Page:
        self.lists.append((query, next_page_token))
        if "WorkflowType" not in query or "LandingZone" in query:
            return Page([], None, self.error)
        runs = [each for each in self.runs if self._matches(each, query)]
        return Page(runs, self.token, self.error)

    @staticmethod
    def _matches(run: Any, query: str) -> bool:
        is_running = run.status == WorkflowExecutionStatus.RUNNING
        if 'ExecutionStatus = "Running"' in query:
            return bool(is_running)
        return not (is_running and "CloseTime" in query)

    def get_workflow_handle(self, workflow_id: str, run_id: str = "", result_type: object = None) -> Any:
        result = RunResult(run_id=run_id, workflow_id=workflow_id, pipeline="p", audited_hash=AUDITED)

        async def query(*_: object, **__: object) -> RunStatus:
            self.queries += 1
            return RunStatus(stage=self.stage, events=[], result=result, deadline=self.deadline)

        async def ended(**_: object) -> RunResult:
            if self.reason is None:
                raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
            return result.model_copy(update={"reason": self.reason})

        async def describe() -> Any:
            pending = SimpleNamespace(pending_activities=[])
            running = WorkflowExecutionStatus.RUNNING
            return SimpleNamespace(run_id=run_id, raw_description=pending, history_length=self.events, status=running)

        async def forgotten(**_: object) -> AsyncIterator[Any]:
            raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
            yield

        return SimpleNamespace(
            id=workflow_id, run_id=run_id, query=query, describe=describe, result=ended, fetch_history_events=forgotten
        )


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[[Attention | None], None]:
    """Nothing needs attention soon, unless the test says so, or says by None that reading it never ends."""

    def reads(seen: Attention | None) -> None:
        async def read(_: AttentionReader) -> Attention:
            return seen or await asyncio.Future[Attention]()

        monkeypatch.setattr(AttentionReader, "_read", read)

    reads(Attention([], [], [], [], []))
    return reads


async def _home(temporal: Temporal) -> Answer:
    return await in_time(browser(temporal).get("/"))


async def test_what_waits_comes_first_and_is_in_the_title() -> None:
    answer = await _home(Temporal(execution(2, is_running=True), execution(3, "published")))
    assert "<title>Needs you (1) · Sluice</title>" in answer.text
    assert 'href="/runs/p-000000000002/run-2#decide">Open the run</a>' in answer.text
    assert "by somebody" in answer.text, "its history is no longer in Temporal"


async def test_a_card_has_the_dialog_that_decides_about_its_hash() -> None:
    temporal = Temporal(execution(2, is_running=True))
    text = (await _home(temporal)).text
    (card,) = [part.split("</article>")[0] for part in text.split('<article class="panel waiting">')[1:]]
    assert card.count('action="/runs/p-000000000002/run-2/decision"') == 2
    assert card.count(f'name="report" value="{AUDITED[:12]}') == 2
    for decision in ("Approve", "Reject"):
        assert f'>{decision} <code class="hash" title="{AUDITED}">' in card
    assert "Main does not change." in card and "If main changes first, the run is audited again." in card
    assert "disabled" not in card
    viewer = (await in_time(behind_proxy(temporal, "vera").get("/"))).text
    assert viewer.count("disabled>") == 2 and "To decide about a run, you need the role approver" in viewer


async def test_the_deadline_of_a_waiting_run_is_a_time_that_a_script_counts_down() -> None:
    temporal = Temporal(execution(2, is_running=True))
    assert "data-deadline" not in (await _home(temporal)).text
    temporal.deadline, temporal.events = "2026-12-01T14:00:00+00:00", 6
    text = (await _home(temporal)).text
    assert 'datetime="2026-12-01T14:00:00+00:00"' in text
    assert "data-deadline>Until 2026-12-01 14:00 UTC</time>" in text, "people without JavaScript read it"
    assert '<script src="/static/countdown.js" defer></script>' in text


async def test_home_says_that_it_shows_the_latest_runs_of_a_busy_day() -> None:
    runs = [execution(0, "published") for _ in range(1_000)]
    for number, each in enumerate(runs):
        each.run_id = f"run-{number}"
    assert "latest 1,000" not in (await _home(Temporal(*runs[:999]))).text
    assert "the latest 1,000 runs; each mark is one run" in (await _home(Temporal(*runs))).text


async def test_what_runs_does_not_wait() -> None:
    temporal = Temporal(execution(2, is_running=True))
    temporal.stage = "writing"
    answer = await _home(temporal)
    assert "<title>Home · Sluice</title>" in answer.text and "writing" in answer.text


async def test_only_outcomes_lead_to_the_list_of_runs() -> None:
    """The list cannot be filtered by `terminated`, which is no outcome."""
    answer = await _home(Temporal(execution(2, "published"), execution(3)))
    assert 'href="/runs?state=published"' in answer.text
    assert "1 terminated" in answer.text and "state=terminated" not in answer.text


async def test_many_readers_cost_temporal_what_one_does() -> None:
    temporal = Temporal(execution(2, is_running=True))
    opened = browser(temporal)
    answers = await in_time(asyncio.gather(*(opened.get("/") for _ in range(50))))
    assert {each.status for each in answers} == {200}
    assert len(temporal.lists) == 2, temporal.lists


async def test_home_does_not_wait_for_a_worker_that_does_not_answer(known: Callable[[None], None]) -> None:
    known(None)
    answer = await in_time(browser(Temporal(), timing=PageTiming(patience=0.01)).get("/"))
    assert answer.status == 200 and "are still being read" in answer.text
    assert answer.text.count("Not known.") == 4, "it does not say that there are none"


async def test_what_cannot_be_read_is_not_shown_as_none(known: Callable[[Attention], None]) -> None:
    known(Attention([], None, [], ["Landing zones are not known: no worker"], []))
    answer = await _home(Temporal())
    assert "Landing zones are not known: no worker" in answer.text and answer.text.count("Not known.") == 2, (
        "nor late tables"
    )
    assert "No schedules are deployed." in answer.text


async def test_a_landing_zone_is_shown_when_no_file_arrives_in_time(known: Callable[[Attention], None]) -> None:
    def zone(name: str, hours: float, *, is_empty: bool = False) -> ZoneStatus:
        begun = datetime.now(timezone.utc).timestamp() - hours * 3600
        arrived = None if is_empty else begun
        stated = PipelineText(name=f"{name}.yml", text="", folder="")
        return ZoneStatus(
            name=name, pipeline=stated, batches=[], paused="", problem="", counts={}, latest_arrival=arrived,
            next_look="", expect=86400.0, since=begun,
        )  # fmt: skip

    known(Attention([], [zone("late", 26.5), zone("early", 23), zone("empty", 30.5, is_empty=True)], [], [], []))
    answer = await _home(Temporal())
    assert "nothing to load arrived for 1 d 2 h; `expect` allows 1d" in answer.text
    assert "nothing to load arrived for 1 d 6 h" in answer.text, "a zone that never got a file"
    assert 'href="/arrivals/late"' in answer.text and 'href="/arrivals/early"' not in answer.text


async def test_temporal_does_not_answer() -> None:
    temporal = Temporal()
    temporal.error = RPCError("connection refused", RPCStatusCode.UNAVAILABLE, b"")
    opened = browser(temporal)
    for path in ("/", "/runs"):
        answer = await opened.get(path)
        assert answer.status == 503 and "Temporal does not answer" in answer.text
    assert (await opened.get("/api/runs")).json == {"error": "connection refused"}
    temporal.error = None
    assert (await opened.get("/")).status == 200, "the error is not kept"


async def test_the_list_of_runs_leads_to_older_ones() -> None:
    temporal = Temporal(*(execution(number, "published") for number in range(1, 51)), token=b"\x00key\xff")
    opened = browser(temporal)
    first = await opened.get("/runs?pipeline=p&table=t.x&state=published")
    (older,) = [each for each in first.text.split('"') if "after=" in each]
    assert older == "/runs?pipeline=p&amp;table=t.x&amp;state=published&amp;after=AGtlef8%3D"
    assert "data-live" in first.text
    second = await opened.get(older.replace("&amp;", "&"))
    assert temporal.lists[-1][1] == b"\x00key\xff" and temporal.lists[-1][0] == temporal.lists[0][0]
    assert "data-live" not in second.text, "its address stays, but its runs would change"


async def test_the_list_of_runs_of_some_days() -> None:
    """The last day counts, and the address of older runs keeps the days."""
    temporal = Temporal(*(execution(number, "published") for number in range(1, 51)), token=b"key")
    answer = await browser(temporal).get("/runs?since=2026-11-20&until=2026-11-21")
    assert temporal.lists[0][0].endswith(
        'AND StartTime >= "2026-11-20T00:00:00+00:00" AND StartTime < "2026-11-22T00:00:00+00:00"'
    )
    assert 'name="since" value="2026-11-20"' in answer.text and 'name="until" value="2026-11-21"' in answer.text
    assert 'href="/runs?since=2026-11-20&amp;until=2026-11-21&amp;after=a2V5"' in answer.text
    assert '<a href="/runs">Show all</a>' in answer.text


@pytest.mark.parametrize("day", ["yesterday", "2026-02-30", "0001-01-01", "9999-12-31", '" OR 1=1', "9" * 200])
@pytest.mark.parametrize("name", ["since", "until"])
async def test_a_day_that_is_no_date_is_refused(name: str, day: str) -> None:
    temporal = Temporal()
    answer = await browser(temporal).get(f"/runs?{urlencode({name: day})}")
    assert answer.status == 400 and name in answer.text and not temporal.lists


async def test_the_list_of_runs_shows_what_failed() -> None:
    temporal = Temporal(execution(1, "published"), execution(2, "quarantined"), execution(3))
    assert "<details" not in (await browser(temporal).get("/runs")).text, "their histories are deleted"
    temporal.reason = "the audit failed:\n" + 'not_null(id) of <t.x> "' * 40
    answer = await browser(temporal).get("/runs")
    assert answer.text.count("<details") == 2, "no reason is read for a published run"
    reason = "the audit failed: not_null(id) of &lt;t.x&gt; &#34;"
    assert answer.text.count(f'<summary title="{reason}') == answer.text.count(f"<p>{reason}") == 2
    (shown, _) = [part.split("</p>")[0] for part in answer.text.split("<p>the audit")[1:]]
    assert shown.endswith("…") and len(shown) < 800


async def test_pipelines_with_their_last_runs() -> None:
    temporal = Temporal(*(execution(number, "published") for number in range(1, 13)))
    answer = await browser(temporal).get("/pipelines")
    links = [part.split('"')[0] for part in answer.text.split('href="/runs/')[1:]]
    assert links == [f"p-{number:012x}/run-{number}" for number in range(10, 0, -1)]
    assert '<a href="/runs?pipeline=p">p</a>' in answer.text and "a person or a program" in answer.text


async def test_home_names_late_tables(known: Callable[[Attention], None]) -> None:
    daily = [replace(await listed_run(execution(60 * hours, "published")), tables=["t.x", "t.y__quarantine"])
             for hours in range(50, 300, 24)]  # fmt: skip
    known(Attention([], [], [], [], daily))
    answer = await _home(Temporal())
    assert 'Late tables <span class="count">1</span>' in answer.text
    assert '<a href="/tables/t.x"><code>t.x</code></a> <span class="muted">late by 26 h: usually every' in answer.text
    known(Attention([], [], [], [], daily[:3]))
    assert "No table is late" in (await _home(Temporal())).text


@pytest.mark.parametrize("key", ["a", "%C3%A9", "AAAA"])
async def test_a_wrong_key_of_the_list(key: str) -> None:
    temporal = Temporal()
    temporal.error = RPCError("invalid page token", RPCStatusCode.INVALID_ARGUMENT, b"")
    answer = await browser(temporal).get(f"/runs?after={key}")
    assert answer.status == 400 and "begin again at /runs" in answer.text


async def test_programs_get_the_same_list() -> None:
    answer = await browser(Temporal(execution(2, "published"), execution(3))).get("/api/runs?limit=5")
    assert [(each["run_id"], each["outcome"], each["state"]) for each in answer.json["runs"]] == [
        ("run-2", "published", "completed"), ("run-3", None, "terminated"),
    ]  # fmt: skip


def _versions(text: str) -> list[str]:
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


async def test_open_pages_cost_a_worker_nothing_while_no_run_goes_on() -> None:
    temporal = Temporal(*(execution(number, is_running=True) for number in range(1, 30)))
    often = PageTiming(runs=0.0, events=0.01)
    await in_time(browser(temporal, timing=often).stream("/events", lambda text: text.count(": no change") == 5))
    assert temporal.queries == 29, "one query for each run"


async def test_the_page_of_a_run_learns_of_its_runs_only() -> None:
    temporal = Temporal(execution(1, is_running=True), execution(2, is_running=True), execution(3, "published"))

    def goes_on(text: str) -> bool:
        """Let another run end, then the run of the page."""
        quiet = text.count(": no change")
        if quiet == 2 and len(temporal.runs) == 3:
            temporal.runs = [temporal.runs[0], execution(2, "failed")]
        if quiet == 4:
            temporal.runs = [execution(1, "published")]
        return quiet >= 4 and len(_versions(text)) == 2

    often = PageTiming(runs=0.0, events=0.01)
    opened = browser(temporal, timing=often)
    answer = await in_time(opened.stream("/events?workflow_id=p-000000000001", goes_on))
    assert len(set(_versions(answer.text))) == 2
    other = await in_time(opened.stream("/events?workflow_id=nobody", lambda text: "no change" in text))
    assert _versions(other.text) == ["unlisted"]


async def test_runs_that_ended_are_listed_once() -> None:
    """Each end of a run makes home list the runs that ended since, and no earlier ones."""
    temporal = Temporal(execution(1, is_running=True), *(execution(number, "published") for number in range(2, 40)))
    opened = browser(temporal, timing=PageTiming(runs=0.0))
    assert "38 published" in (await opened.get("/")).text
    long_ago = [each for each in temporal.runs if each.close_time]
    temporal.runs = [execution(1, "failed")]
    answer = await opened.get("/")
    assert "38 published" in answer.text and "1 failed" in answer.text
    sinces = [query.split('CloseTime >= "')[1].split('"')[0] for query, _ in temporal.lists if "CloseTime" in query]
    first, second = map(datetime.fromisoformat, sinces)
    assert timedelta(hours=23) < second - first < timedelta(hours=24)
    assert all(each.close_time < second for each in long_ago[3:])


async def test_open_pages_learn_of_each_change_once() -> None:
    temporal = Temporal(execution(2, is_running=True))
    lost = RPCError("connection refused", RPCStatusCode.UNAVAILABLE, b"")

    def goes_on(text: str) -> bool:
        """Let something happen after each event."""
        versions = _versions(text)
        if not text.endswith(": no change\n\n"):
            return False
        if len(versions) == 1:
            temporal.stage, temporal.events = "publishing", 8
        temporal.error = lost if len(versions) == 2 else None
        return len(versions) == 4

    often = PageTiming(runs=0.0, events=0.01)
    answer = await in_time(browser(temporal, timing=often).stream("/events", goes_on))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith("retry: 2000\n\nevent: runs\ndata: ")
    waiting, publishing, unreachable, again = _versions(answer.text)
    assert waiting != publishing == again and unreachable == "unreachable"
