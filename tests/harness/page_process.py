"""The page as a process of a person, which tests kill and start again, and its pages in a real browser."""

import os
import signal
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import requests
from playwright.sync_api import Browser, BrowserContext, Page

from tests.harness.forked import ForkedProcess
from tests.harness.processes import wait_for
from tests.harness.waiting import LIMIT
from web.session import HEALTH, Session, read_or_make_token


class PageProcess:
    """The command `page` of a person."""

    def __init__(self, environment: Mapping[str, str], folder: Path, person: str) -> None:
        self._variables = {**os.environ, **environment, "LOGNAME": person}
        self._folder, self.log = folder, folder / f"page-{person}.log"
        self.session = Session(read_or_make_token(Path(environment["SLUICE_HOME"])), person, _free_port())
        self.start()

    def start(self) -> None:
        """Start it on its port, and wait until it answers."""
        self._process = ForkedProcess(
            partial(_page, self.session.port), self._folder, self._variables, self.log, self.log
        )
        wait_for(self._answers, self.log.read_text)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(LIMIT)

    def signed_in(self, browser: Browser, **options: object) -> BrowserContext:
        """Return a new browser window that signed in by the printed address.

        Args:
            options: options of the window, such as `color_scheme`.
        """
        context = browser.new_context(base_url=self.session.origin, **options)  # type: ignore[arg-type]
        context.set_default_timeout(LIMIT * 1000)
        tab = context.new_page()
        tab.goto(self.session.address)
        assert tab.url == f"{self.session.origin}/", "the address with the token is not shown"
        tab.close()
        return context

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.session.origin}{HEALTH}", timeout=10).text == str(self._process.pid)
        except requests.ConnectionError:
            return False


def move_to(tab: Page, selector: str) -> None:
    """Move the focus to an element by the Tab key alone."""
    for _ in range(300):
        tab.keyboard.press("Tab")
        if tab.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def _page(port: int) -> None:
    from cli.app import main  # noqa: PLC0415  # the server of forked processes has imported it

    main(("page", "--port", str(port)))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
