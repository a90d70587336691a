"""Signatures in a real browser: the key stays there, and the workers count what it signed."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from sluice.approval.approvers import Approvers
from sluice.approval.decisions import Decision
from sluice.approval.signatures import new_approver_key, verification_error
from sluice.settings import read_settings
from tests.harness.page_process import PageProcess
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness

APPROVE = re.compile("^Approve ")
REASON = 'looks right: ä 😀 <b> "quoted"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signing")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """The public keys of Ana and Ben, whose private keys are in files."""
    public = {}
    for name in ("ana", "ben"):
        pem, public[name] = new_approver_key()
        (folder / f"{name}.pem").write_text(pem)
    return public


@pytest.fixture(scope="module")
def runs(warm_stack: dict[str, str], folder: Path, keys: dict[str, str]) -> Iterator[SystemHarness]:
    """Runs whose workers count signed decisions alone."""
    (folder / "approvers").write_text("".join(f"{name} {key}\n" for name, key in keys.items()))
    environment = {
        **os.environ, **warm_stack, "SLUICE_TASK_QUEUE": "page-signing", "SLUICE_WORKER_ROLE": "control",
    }  # fmt: skip
    worker = WorkerProcess({**environment, "SLUICE_APPROVERS_FILE": str(folder / "approvers")}, folder)
    yield SystemHarness(folder, environment, spark_queue=read_settings(warm_stack).installation.spark_queue)
    worker.stop()


@pytest.fixture(scope="module")
def ana(runs: SystemHarness, folder: Path) -> Iterator[PageProcess]:
    page = PageProcess(runs.environment, folder, "ana")
    yield page
    page.kill()


def waiting(runs: SystemHarness, name: str) -> tuple[str, str]:
    """Start a run that waits for approval; return its workflow id and its path on the page."""
    source = csv_file(runs.folder / name / "in.csv", [{"id": 1}])
    run = runs.start(pipeline(name, source, more="approval: {timeout: 1h}"))
    return run, f"/runs/{run}/{runs.wait_for_stage(run, 'waiting for approval')['run_id']}"


class Watched:
    """A window of a browser: what it sends, and the errors of its pages."""

    def __init__(self, context: BrowserContext) -> None:
        self.sent: list[str] = []
        self.problems: list[str] = []
        context.on("request", self._record)
        context.on("console", self._judge)
        context.on("weberror", lambda error: self.problems.append(str(error.error)))

    def _record(self, request: Request) -> None:
        self.sent.append(f"{request.url}\n{request.headers}\n{request.post_data or ''}")

    def _judge(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.problems.append(message.text)


def choose_key(tab: Page, file: Path) -> None:
    """Choose a file as a person does: the field has the focus. The script may not have looked for a kept key yet."""
    field = tab.get_by_label("Private key")
    field.focus()
    field.set_input_files(file)


def expect_no_renewal_during_a_dialog_for_files(tab: Page) -> None:
    """Renew the page while the field of the key has the focus, as it has while the dialog is open."""
    tab.get_by_label("Private key").focus()  # first: the page may renew itself until then
    tab.evaluate("document.querySelector('#live').dataset.isOld = 'true'")
    tab.evaluate("refresh()")
    expect(tab.locator("#live[data-is-old]")).to_have_count(1)


def expect_the_key_after_renewals(tab: Page) -> None:
    """Search for a kept key while the page renews itself; then let the report of the page be outdated."""
    for action in ("reading = null; ownKey = null; isKept = false", "await Promise.all([prepare(), prepare()])"):
        tab.evaluate(f"async () => {{ {action} }}")
    expect(tab.get_by_text("This browser keeps the key of ana.")).to_be_visible()
    expect(tab.get_by_role("button", name=APPROVE)).to_be_enabled()
    address = tab.evaluate("document.querySelector('form[data-decision]').getAttribute('action')")
    tab.evaluate(f"async () => {{ warnIfStale(document.querySelector('#live'), '{address}'); await prepare(); }}")
    expect(tab.get_by_role("button", name=APPROVE)).to_be_disabled()


def export_kept_key(tab: Page) -> list[str]:
    """Try to read the key of Ana in each format; return the outcomes."""
    outcomes: list[str] = tab.evaluate("""async () => {
        const request = indexedDB.open("sluice");
        await new Promise((resolve) => { request.onsuccess = resolve; });
        const get = request.result.transaction("keys").objectStore("keys").get("ana");
        await new Promise((resolve) => { get.onsuccess = resolve; });
        const formats = ["pkcs8", "jwk", "raw"].map((each) => crypto.subtle.exportKey(each, get.result));
        return (await Promise.allSettled(formats)).map((each) => each.status);
    }""")
    return outcomes


@pytest.mark.slow
def test_a_key_that_the_browser_keeps_signs_and_is_never_sent(
    browser: Browser, ana: PageProcess, runs: SystemHarness, keys: dict[str, str], folder: Path
) -> None:
    run, path = waiting(runs, "signed-kept")
    with ana.signed_in(browser) as context:
        watched = Watched(context)
        tab = context.new_page()
        tab.goto(path)
        approve = tab.get_by_role("button", name=APPROVE)
        expect(tab.get_by_label("Private key")).to_be_visible()
        expect(approve).to_be_disabled()
        expect_no_renewal_during_a_dialog_for_files(tab)
        for wrong in ("approvers", "signed-kept/in.csv"):
            choose_key(tab, folder / wrong)
            expect(tab.get_by_role("alert")).to_contain_text("This file has no private key as approver-key makes it")
        tab.get_by_label("Keep it in this browser").check()
        choose_key(tab, folder / "ana.pem")
        expect(tab.get_by_text("This browser keeps the key of ana.")).to_be_visible()
        tab.get_by_label("Note (optional)").fill(REASON)
        approve.click()
        sign = tab.get_by_role("button", name="Sign and approve")
        expect(sign).to_be_focused()
        shown = tab.locator("form[data-decision] dl").first
        status = runs.wait_for_stage(run, "waiting for approval")
        for text in (status["run_id"], status["audited_hash"], status["audit_digest"], REASON, "approve", "ana"):
            expect(shown).to_contain_text(text)
        tab.evaluate("refresh()")
        expect(sign).to_be_visible()  # the page does not renew itself while a person reads what to sign
        tab.get_by_role("button", name="Go back").click()
        expect(sign).to_have_count(0)
        tab.get_by_label("Note (optional)").fill("")
        tab.get_by_role("heading", name="signed-kept").click()
        tab.evaluate("document.querySelector('#live').dataset.isOld = 'true'")
        tab.evaluate("refresh()")
        expect(tab.locator("#live[data-is-old]")).to_have_count(0)
        expect(approve).to_be_enabled()  # also after the page has renewed itself
        tab.get_by_label("Note (optional)").fill(REASON)
        other = context.new_page()
        other.goto(path)
        expect(other.get_by_text("This browser keeps the key of ana.")).to_be_visible()
        expect_the_key_after_renewals(other)
        assert export_kept_key(other) == ["rejected"] * 3, "no script can read the key"
        approve.click()
        sign.click()
        expect(tab.locator("#decisions")).to_contain_text("signed")
        ended = runs.wait_for_end(run).json
        assert ended["outcome"] == "published", ended
        (decision,) = [Decision.model_validate(each) for each in ended["approval"]["decisions"]]
        assert (decision.by, decision.reason) == ("ana", REASON)
        assert verification_error(decision, ended["run_id"], Approvers({"ana": keys["ana"]})) == ""
        secret = (folder / "ana.pem").read_text().splitlines()[1]
        assert watched.sent and not any(secret in each or secret[-40:] in each for each in watched.sent)
        assert not watched.problems


@pytest.mark.slow
def test_a_key_that_is_used_once_and_the_key_of_another_person(
    browser: Browser, ana: PageProcess, runs: SystemHarness, folder: Path
) -> None:
    run, path = waiting(runs, "signed-once")
    with ana.signed_in(browser) as context:
        watched = Watched(context)
        tab = context.new_page()
        tab.goto(path)
        choose_key(tab, folder / "ben.pem")
        expect(tab.get_by_text("The key of ana is ready until you leave this page.")).to_be_visible()
        tab.get_by_role("button", name=APPROVE).click()
        tab.get_by_role("button", name="Sign and approve").click()
        expect(tab.get_by_role("alert").first).to_contain_text("its signature is not ana's")
        expect(tab.get_by_label("Private key")).to_be_visible()  # the page was left, and the key is forgotten
        choose_key(tab, folder / "ana.pem")
        tab.get_by_role("button", name="Forget the key").click()
        expect(tab.get_by_role("button", name=APPROVE)).to_be_disabled()
        choose_key(tab, folder / "ana.pem")
        tab.locator("summary", has_text="Reject instead").click()
        tab.get_by_label("Reason (required)").fill("wrong month\nsecond line")
        tab.get_by_role("button", name=re.compile("^Reject ")).click()
        tab.get_by_role("button", name="Sign and reject").click()
        expect(tab.locator("#decisions")).to_contain_text("wrong month")
        ended = runs.wait_for_end(run).json
        assert (ended["cause"], ended["approval"]["decisions"][0]["reason"]) == ("rejected", "wrong month\nsecond line")
        assert not watched.problems


@pytest.mark.slow
def test_a_browser_that_cannot_sign_gets_the_command(
    browser: Browser, ana: PageProcess, runs: SystemHarness, folder: Path
) -> None:
    run, path = waiting(runs, "signed-command")
    for width, scheme in ((1280, "light"), (390, "dark")):  # the tool of this check is a script
        options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "bypass_csp": True}
        with ana.signed_in(browser, **options) as context:
            tab = context.new_page()
            tab.goto(path)
            choose_key(tab, folder / "ana.pem")
            tab.get_by_role("button", name=APPROVE).click()
            expect(tab.get_by_role("button", name="Sign and approve")).to_be_visible()
            violations = Axe().run(tab).response["violations"]
            assert not [each["id"] for each in violations if each["impact"] in ("serious", "critical")]
            assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
            if pictures := os.environ.get("PICTURES"):
                tab.screenshot(path=f"{pictures}/signing-{width}.png", full_page=True)
    without = "crypto.subtle.generateKey = () => Promise.reject(new DOMException('no', 'NotSupportedError'));"
    for java_script in (True, False):
        with ana.signed_in(browser, java_script_enabled=java_script) as context:
            context.add_init_script(without)
            tab = context.new_page()
            tab.goto(path)
            expect(tab.get_by_text("this browser cannot sign")).to_be_visible()
            expect(tab.get_by_role("button", name=APPROVE)).to_be_disabled()
            expect(tab.get_by_label("Private key")).to_be_hidden()
            command = tab.locator(".signing code.command").first.inner_text()
    _, _, arguments = command.partition("run_workflow.py ")
    done = runs.command(*arguments.split(), SLUICE_APPROVAL_KEY_FILE=str(folder / "ana.pem"))
    assert done.code == 0, done
    assert runs.wait_for_end(run).json["outcome"] == "published"
