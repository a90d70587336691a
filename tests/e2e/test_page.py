"""The page in a real browser, on real runs: what people see, and what their clicks and keys do."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Route, expect

from tests.harness.page_process import PageProcess, move_to
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

OLDER = "abcabcabcabc:abcabcabcabc"  # names a report that is not the present one
SCRIPT = "<script>document.title='hacked'</script>"
Start = Callable[..., str]


@pytest.fixture
def ben(warm_stack: dict[str, str], tmp_path: Path) -> Iterator[PageProcess]:
    page = PageProcess(warm_stack, tmp_path, "ben")
    yield page
    page.kill()


@pytest.fixture
def tab(browser: Browser, ana: PageProcess) -> Iterator[Page]:
    """A tab of Ana's browser, in which nothing may break the content security policy or raise an error."""
    problems: list[str] = []
    with ana.signed_in(browser) as context:
        tab = context.new_page()
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.extend(_problem(message)))
        yield tab
    assert not problems


def _problem(message: ConsoleMessage) -> list[str]:
    """Return a message of the browser about the page. It also reports each response that is an error."""
    is_status = "Failed to load resource" in message.text
    return [message.text] if message.type in ("error", "warning") and not is_status else []


@pytest.fixture
def start(runs: SystemHarness) -> Start:
    """Start a run that waits for approval; return its workflow id."""

    def start(name: str, approval: str = "{timeout: 1h}") -> str:
        source = csv_file(runs.folder / name / "in.csv", [{"id": 1, "label": "a"}])
        return runs.start(pipeline(name, source, more=f"approval: {approval}"))

    return start


@pytest.fixture(scope="module")
def broken(runs: SystemHarness) -> str:
    """The address of a run that was quarantined, because two rows have one label, which is a script."""
    rows = [{"id": 1, "label": SCRIPT}, {"id": 2, "label": SCRIPT}, {"id": 3, "label": "c"}]
    source = csv_file(runs.folder / "broken" / "in.csv", rows)
    ended = runs.run(pipeline("page-broken", source, "[unique: label, not_null: id]")).json
    assert ended["outcome"] == "quarantined", ended
    return f"/runs/{ended['workflow_id']}/{ended['run_id']}"


@pytest.fixture(scope="module")
def undecided(runs: SystemHarness) -> Iterator[str]:
    """The address of a run that waits while tests look at it."""
    source = csv_file(runs.folder / "undecided" / "in.csv", [{"id": 1}])
    run = runs.start(pipeline("page-undecided", source, more="approval: {timeout: 2h}"))
    yield f"/runs/{run}/{runs.wait_for_stage(run, 'waiting for approval')['run_id']}"
    runs.cancel(run)
    runs.wait_for_end(run)


@pytest.fixture(scope="module")
def published(runs: SystemHarness) -> str:
    """The address of a run that was published."""
    source = csv_file(runs.folder / "published" / "in.csv", [{"id": 1, "label": "a"}])
    ended = runs.run(pipeline("page-published", source, "[unique: label, row_count: {min: 2, severity: warn}]")).json
    assert ended["outcome"] == "published", ended
    return f"/runs/{ended['workflow_id']}/{ended['run_id']}"


@pytest.fixture(scope="module")
def zone(runs: SystemHarness) -> Iterator[str]:
    """The address of a landing zone with a file that is not complete yet."""
    landing, folder = runs.folder / "landing", runs.folder / "zones"
    csv_file(landing / "jan.csv", [{"id": 1}])
    folder.mkdir()
    file = folder / "page-zone.yml"
    file.write_text(pipeline("page-zone", landing / "*.csv", more=f"arrival: {{from: {landing}, settle: 2h}}"))
    deploy = ("deploy", str(folder), "--set", "page", "--yes")
    assert runs.command(*deploy).code == 0
    yield "/arrivals/page-zone"
    file.unlink()
    assert runs.command(*deploy).code == 0


@pytest.fixture(scope="module")
def paths(undecided: str, broken: str, published: str, zone: str) -> list[str]:
    """The address of each page, with something to show."""
    lists = ["/", "/runs", "/quarantine", "/arrivals", "/backfills", "/schedules", "/pipelines", "/tables"]
    runs = [undecided, f"{undecided}/diff", broken, published, f"{published}/rollback"]
    return [*lists, *runs, "/tables/t.page_published", zone, "/missing", "/sign-in"]


def card_of(tab: Page, name: str) -> Locator:
    """Return the card of a run that waits, on home."""
    return tab.locator("article.waiting").filter(has=tab.get_by_role("link", name=name, exact=True))


def title_of(name: str, state: str) -> re.Pattern[str]:
    """Return the pattern of the title of a run's page."""
    return re.compile(rf"^{name} \w{{8}}: {state} · Sluice$")


def test_a_waiting_run_appears_and_is_approved(
    tab: Page, browser: Browser, ana: PageProcess, runs: SystemHarness, start: Start
) -> None:
    tab.goto("/")
    run = start("page-one")
    card = card_of(tab, "page-one")
    expect(card).to_be_visible()
    expect(tab).to_have_title(re.compile(r"^Needs you \(\d+\) · Sluice$"))
    expect(card).to_contain_text("+1")
    card.get_by_role("link", name="Open the run").click()

    late = tab.context.new_page()
    late.goto(tab.url.partition("#")[0])
    late.get_by_label("Note (optional)").fill("I read it slowly")
    with ana.signed_in(browser, java_script_enabled=False) as context:
        plain = context.new_page()
        plain.goto(tab.url.partition("#")[0])
        tab.get_by_role("button", name="Approve").click()
        expect(tab.locator("#decisions")).to_contain_text("ana")
        ended = runs.wait_for_end(run).json
        assert ended["outcome"] == "published"
        assert [each["by"] for each in ended["approval"]["decisions"]] == ["ana"]
        expect(tab).to_have_title(title_of("page-one", "published"))

        expect(late.get_by_role("alert")).to_contain_text("The data changed since you opened this page")
        expect(late.get_by_label("Note (optional)")).to_have_value("I read it slowly")
        expect(late.get_by_role("button", name="Approve")).to_be_disabled()
        plain.get_by_role("button", name="Approve").click()
        expect(plain.get_by_role("alert")).to_contain_text("Nothing was decided: the run has ended.")


@pytest.mark.slow
def test_a_report_that_is_not_shown_any_more_is_refused(tab: Page, undecided: str) -> None:
    tab.route("**/events*", lambda route: route.abort())  # the page does not renew itself
    tab.goto(undecided)
    tab.evaluate(f"document.querySelector('input[name=report]').value = '{OLDER}'")
    tab.get_by_role("button", name="Approve").click()
    expect(tab.get_by_role("alert")).to_contain_text("the data changed since this page was opened: abcabca is now")
    expect(tab.locator("#decisions")).to_contain_text("Nobody has decided yet.")
    tab.get_by_role("link", name="Show the present state").click()
    expect(tab).to_have_title(title_of("page-undecided", "waiting for approval"))


@pytest.mark.slow
def test_a_report_that_changes_while_a_person_reads_it_takes_the_button_away(tab: Page, undecided: str) -> None:
    """Nobody uses the form. The run does not wait for a moment, as during a rebase, and then waits with new data."""
    pages = [f'name="report" value="{OLDER}"', 'name="none" value=""']

    def answer(route: Route) -> None:
        text = route.fetch().text()
        body = re.sub('name="report" value="[^"]+"', pages.pop(0), text) if pages else text
        route.fulfill(content_type="text/html", body=body)

    tab.route(f"**{undecided}", answer)
    tab.route("**/events*", lambda it: it.fulfill(content_type="text/event-stream", body="event: runs\ndata: 1\n\n"))
    tab.goto(undecided)
    expect(tab.get_by_role("alert")).to_contain_text("The data changed since you opened this page. Reload it")
    expect(tab.get_by_role("button", name="Approve")).to_be_disabled()


@pytest.mark.slow
def test_two_people_approve_one_without_javascript(
    tab: Page, browser: Browser, ben: PageProcess, runs: SystemHarness, start: Start
) -> None:
    run = start("page-two", "{required: 2, timeout: 1h}")
    runs.wait_for_stage(run, "waiting for approval")
    tab.goto(f"/runs/{run}")
    tab.get_by_role("button", name="Approve").click()
    decision = tab.get_by_role("complementary", name="Your decision")
    expect(decision).to_contain_text("You approved it already. Another person has to decide, too.")
    expect(decision.get_by_role("button", name="Approve")).to_be_disabled()
    with ben.signed_in(browser, java_script_enabled=False) as context:
        other = context.new_page()
        other.goto("/")
        card_of(other, "page-two").get_by_role("link", name="Open the run").click()
        other.get_by_label("Note (optional)").fill("same here")
        other.get_by_role("button", name="Approve").click()
        expect(other.locator("#decisions")).to_contain_text("same here")
    expect(tab).to_have_title(title_of("page-two", "published"))
    decisions = runs.wait_for_end(run).json["approval"]["decisions"]
    assert [(each["by"], each["reason"]) for each in decisions] == [("ana", ""), ("ben", "same here")]


@pytest.mark.slow
def test_a_run_is_rejected_by_keys_alone(tab: Page, runs: SystemHarness, start: Start) -> None:
    run = start("page-keys")
    runs.wait_for_stage(run, "waiting for approval")
    tab.goto("/")
    expect(card_of(tab, "page-keys")).to_be_visible()
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="Skip to content")).to_be_focused()
    tab.keyboard.press("Enter")
    move_to(tab, f"a[href*='{run}'][href$='#decide']")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("button", name="Approve")).to_be_visible()
    move_to(tab, "summary")
    expect(tab.locator("summary:focus")).to_have_text("Reject instead")
    tab.keyboard.press("Enter")
    move_to(tab, "textarea[name=reason]")
    tab.keyboard.type("wrong month")
    move_to(tab, "button.danger")
    tab.keyboard.press("Enter")
    expect(tab.locator("#decisions")).to_contain_text("wrong month")
    ended = runs.wait_for_end(run).json
    assert (ended["cause"], ended["approval"]["decisions"][0]["reason"]) == ("rejected", "wrong month")


@pytest.mark.slow
def test_the_focus_stays_when_the_page_renews_itself(tab: Page, runs: SystemHarness, start: Start) -> None:
    tab.goto("/")
    link = tab.get_by_role("link", name="All runs")
    link.focus()
    run = start("page-focus")
    expect(card_of(tab, "page-focus")).to_be_visible()
    expect(link).to_be_focused()
    other = tab.context.new_page()
    other.goto(f"/runs/{run}")
    other.locator("summary", has_text="Cancel this run").click()
    other.get_by_role("button", name="Cancel page-focus").click()
    expect(other).to_have_title(title_of("page-focus", "cancelled"))
    expect(card_of(tab, "page-focus")).to_have_count(0)
    expect(link).to_be_focused()
    assert runs.wait_for_end(run).json["outcome"] == "cancelled"


@pytest.mark.slow
def test_nobody_decides_in_time(tab: Page, runs: SystemHarness, start: Start) -> None:
    run = start("page-late", "{timeout: 12s}")
    runs.wait_for_stage(run, "waiting for approval", "ended")
    tab.goto(f"/runs/{run}")
    expect(tab).to_have_title(title_of("page-late", "quarantined"))
    expect(tab.get_by_role("button", name="Approve")).to_have_count(0)
    expect(tab.locator("#decisions")).to_contain_text("Nobody decided.")
    assert runs.wait_for_end(run).json["cause"] == "expired"


@pytest.mark.slow
def test_the_server_is_killed_and_starts_again(tab: Page, ana: PageProcess, runs: SystemHarness, start: Start) -> None:
    run = start("page-goes-on")
    tab.goto("/")
    expect(card_of(tab, "page-goes-on")).to_be_visible()
    connection = tab.get_by_role("status")
    expect(connection).to_be_hidden()
    ana.kill()
    expect(connection).to_be_visible()
    runs.approve(run)
    ana.start()
    expect(connection).to_be_hidden()
    expect(card_of(tab, "page-goes-on")).to_have_count(0)
    assert runs.wait_for_end(run).json["outcome"] == "published"
    tab.goto("/runs")
    expect(tab).to_have_title("Runs · Sluice")  # the browser is still signed in


@pytest.mark.slow
def test_a_failing_row_is_text(tab: Page, broken: str) -> None:
    tab.goto(broken)
    expect(tab).to_have_title(title_of("page-broken", "quarantined"))
    row = tab.get_by_role("region", name="Bad rows of unique(label)").locator("td.bad").first
    expect(row).to_have_text(SCRIPT)
    assert tab.locator("main script").count() == 0
    expect(tab.get_by_text("The audit did not reach it")).to_have_count(0)


@pytest.mark.slow
def test_the_pages_are_accessible(browser: Browser, ana: PageProcess, paths: list[str]) -> None:
    """The tool of this test is a script, so the window passes over the content security policy."""
    problems: list[str] = []
    with ana.signed_in(browser, bypass_csp=True) as context:
        tab = context.new_page()
        for path in paths:
            tab.goto(path)
            for fold in tab.locator("details").all():
                fold.evaluate("fold => { fold.open = true; }")
            for scheme, width in SCREENS:
                tab.emulate_media(color_scheme=scheme)
                tab.set_viewport_size({"width": width, "height": 900})
                problems += [f"{path}, {scheme}, {width} pixels wide: {each}" for each in problems_of(tab)]
    assert not problems, "\n".join(problems)


SCREENS: tuple[tuple[Literal["light", "dark"], int], ...] = (
    ("light", 1280),
    ("light", 390),
    ("dark", 390),
    ("dark", 1280),
)


def problems_of(tab: Page) -> list[str]:
    """Return the serious violations of the rules for accessible pages, and by how much the page is too wide."""
    violations = [
        f"{each['id']}: {node['html'][:200]}"
        for each in Axe().run(tab).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*violations, *([f"{over} pixels too wide"] if over > 0 else [])]


TO_REACH = """() => {
    const kinds = "a[href], button, input, select, textarea, summary, [tabindex]";
    const canFocus = (each) => each.tabIndex >= 0 && !each.disabled && each.checkVisibility() && each.type !== "hidden";
    return [...document.querySelectorAll(kinds)].filter((each) => canFocus(each) && !each.dataset.reached)
        .map((each) => each.outerHTML.slice(0, 150));
}"""
"""Elements that people use and that the Tab key has not reached."""
REACHED = """() => {
    const focused = document.activeElement;
    focused.dataset.reached = "yes";
    const isShown = focused.matches(":focus-visible, [type=date]") && getComputedStyle(focused).outlineStyle !== "none";
    return isShown || focused === document.body;
}"""
"""Mark the element with the focus; return True if people see that it has the focus."""


@pytest.mark.slow
def test_the_tab_key_reaches_everything_and_shows_where_it_is(tab: Page, paths: list[str]) -> None:
    tab.route("**/events*", lambda route: route.abort())  # no page renews itself
    for path in paths:
        tab.goto(path)
        for fold in tab.locator("details").all():
            fold.evaluate("fold => { fold.open = true; }")
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("link", name="Skip to content")).to_be_focused()
        for _ in range(4 * len(tab.evaluate(TO_REACH))):  # a date has several stops
            assert tab.evaluate(REACHED), f"{path}: {tab.evaluate('document.activeElement.outerHTML')[:200]}"
            if not tab.evaluate(TO_REACH):
                break
            tab.keyboard.press("Tab")
        assert not tab.evaluate(TO_REACH), path


@pytest.mark.slow
def test_a_link_of_another_site_leads_to_the_run(browser: Browser, ana: PageProcess, undecided: str) -> None:
    """The browser sends no strict cookie with the link, but with the next request."""
    link = f'<a href="{ana.session.origin}{undecided}">the run</a>'
    with ana.signed_in(browser) as context:
        tab = context.new_page()
        tab.route("http://chat.example/", lambda route: route.fulfill(body=link, content_type="text/html"))
        tab.goto("http://chat.example/")
        tab.get_by_role("link", name="the run").click()
        expect(tab).to_have_title(title_of("page-undecided", "waiting for approval"))


@pytest.mark.slow
def test_another_site_and_a_stranger_change_nothing(browser: Browser, ana: PageProcess, undecided: str) -> None:
    """The other site is on another port of this machine, to whose pages browsers also send the cookie."""
    address = f"{ana.session.origin}{undecided}"
    form = f"""<form method="post" action="{address}/cancel">
      <input name="form_token" value="{ana.session.form_token("ana")}"><button>Win</button></form>"""
    with ana.signed_in(browser) as context:
        other = context.new_page()
        other.route("http://127.0.0.1:9999/", lambda route: route.fulfill(body=form, content_type="text/html"))
        other.goto("http://127.0.0.1:9999/")
        other.get_by_role("button", name="Win").click()
        expect(other.locator("body")).to_contain_text("This page accepts no requests from http://127.0.0.1:9999.")
    with browser.new_context() as context:
        stranger = context.new_page()
        stranger.goto(address)
        expect(stranger).to_have_title("Sign in · Sluice")
        stranger.get_by_label("Token").fill("wrong")
        stranger.get_by_role("button", name="Sign in").click()
        expect(stranger.get_by_role("alert")).to_contain_text("This is not the token of this page.")
        stranger.get_by_label("Token").fill(ana.session.secret)
        stranger.get_by_role("button", name="Sign in").click()
        expect(stranger).to_have_title(title_of("page-undecided", "waiting for approval"))
        assert stranger.url == address
