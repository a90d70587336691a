"""Deadlines, queries to copy, and decisions on the home page, in a real browser and on real runs."""

import re
import shlex
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect

from tests.harness.page_process import PageProcess
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

OLDER = "abcabcabcabc:abcabcabcabc"  # names a report that is not the present one
pytestmark = pytest.mark.slow


@pytest.fixture
def window(browser: Browser, ana: PageProcess) -> Iterator[BrowserContext]:
    with ana.signed_in(browser, permissions=["clipboard-read", "clipboard-write"]) as context:
        yield context


def waiting(runs: SystemHarness, name: str, checks: str = "[]") -> tuple[str, str]:
    """Start a run that waits for approval; return its workflow id and its path on the page."""
    source = csv_file(runs.folder / name / "in.csv", [{"id": 1, "label": "a"}, {"id": 2, "label": "a"}])
    run = runs.start(pipeline(name, source, checks, more="approval: {timeout: 2h}"))
    return run, f"/runs/{run}/{runs.wait_for_stage(run, 'waiting for approval')['run_id']}"


def test_the_query_for_bad_rows_is_copied_and_finds_them(runs: SystemHarness, window: BrowserContext) -> None:
    run, path = waiting(runs, "page-copied", "[unique: {column: label, severity: warn}]")
    tab = window.new_page()
    tab.goto(path)
    tab.locator("summary", has_text="SQL that finds these rows").click()
    tab.get_by_role("button", name="Copy").click()
    expect(tab.get_by_role("button", name="Copied")).to_be_visible()
    sql = tab.evaluate("navigator.clipboard.readText()")
    assert sql == tab.locator(".copied code").text_content()
    (note,) = tab.get_by_text("Run it by").all_text_contents()
    command = re.search(r"query SQL (--ref [\w-]+)\.", note)
    assert command, note
    rows = runs.command("query", sql, *shlex.split(command[1]), "--json").json["rows"]
    assert [row["id"] for row in rows] == [1, 2]
    runs.cancel(run)
    runs.wait_for_end(run)


def test_a_deadline_is_counted_down(runs: SystemHarness, window: BrowserContext, ana: PageProcess) -> None:
    run, path = waiting(runs, "page-deadline")
    tab = window.new_page()
    for shown in ("/", path):
        tab.goto(shown)
        deadline = tab.locator("[data-deadline]").first
        expect(deadline).to_have_text(re.compile(r"^1 h 5\d min left$"))
        assert re.match(r"Until 20\d\d-\d\d-\d\d \d\d:\d\d UTC$", deadline.get_attribute("title") or "")
    tab.clock.install()
    tab.clock.fast_forward("03:00:00")
    expect(tab.locator("[data-deadline]")).to_have_text("The deadline has passed")
    runs.cancel(run)
    runs.wait_for_end(run)


def dialog_of(tab: Page, name: str) -> Locator:
    """Open the dialog on the card of a run that waits, on home."""
    card = tab.locator("article.waiting").filter(has=tab.get_by_role("link", name=name, exact=True))
    card.locator("summary", has_text="Approve or reject").click()
    return card


def test_runs_are_decided_on_home(runs: SystemHarness, window: BrowserContext) -> None:
    approved, _ = waiting(runs, "page-yes")
    rejected, _ = waiting(runs, "page-no")
    tab = window.new_page()
    tab.goto("/")
    card = dialog_of(tab, "page-yes")
    expect(card).to_contain_text("One merge publishes 1 table. If main changes first, the run is audited again.")
    card.get_by_role("button", name=re.compile("^Approve [0-9a-f]{7}$")).click()
    expect(tab.locator("#decisions")).to_contain_text("ana")
    assert runs.wait_for_end(approved).json["outcome"] == "published"
    tab.goto("/")
    card = dialog_of(tab, "page-no")
    card.locator("summary", has_text="Reject instead").click()
    card.get_by_role("button", name="Reject").click()
    assert tab.evaluate("location.pathname") == "/", "the browser asks for the reason"
    card.get_by_label("Reason (required)").fill("wrong month")
    card.get_by_role("button", name="Reject").click()
    expect(tab.locator("#decisions")).to_contain_text("wrong month")
    assert runs.wait_for_end(rejected).json["cause"] == "rejected"


def test_only_an_open_dialog_about_an_older_report_is_disabled(runs: SystemHarness, window: BrowserContext) -> None:
    """A closed dialog shows no button that a person could have meant for the older report."""
    run, _ = waiting(runs, "page-older")
    tab = window.new_page()
    pages: list[str] = []

    def answer(route: Route) -> None:
        text = route.fetch().text()
        older = re.sub('name="report" value="[^"]+"', f'name="report" value="{OLDER}"', text) if pages else text
        route.fulfill(content_type="text/html", body=older)

    tab.route(lambda address: address.endswith("/"), answer)
    tab.route("**/events*", lambda it: it.fulfill(content_type="text/event-stream", body="event: runs\ndata: 1\n\n"))
    for is_open in (True, False):
        pages[:] = [OLDER]
        tab.goto("/")
        card = tab.locator("article.waiting").filter(has=tab.get_by_role("link", name="page-older", exact=True))
        if is_open:
            card = dialog_of(tab, "page-older")
        pages.clear()
        if is_open:
            expect(card.get_by_role("alert")).to_contain_text("The data changed since you opened this page.")
            expect(card.get_by_role("button", name="Approve")).to_be_disabled()
        else:
            expect(card.locator("input[name=report]").first).not_to_have_value(OLDER)
            expect(dialog_of(tab, "page-older").get_by_role("button", name="Approve")).to_be_enabled()
    tab.unroute_all(behavior="ignoreErrors")
    runs.cancel(run)
    runs.wait_for_end(run)
