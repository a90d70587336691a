"""The progress display of a set-up: plain lines, and a line for each step on a terminal."""

import io
import os
import pty
import threading
from pathlib import Path

import pytest

from devstack.set_up.runner import Progress, Runner, State
from devstack.set_up.view import PlainView, TerminalView, choose_view
from tests.harness.set_up_steps import step
from tests.harness.waiting import LIMIT


def test_plain_lines_say_what_starts_what_goes_on_and_what_ended(tmp_path: Path) -> None:
    out = io.StringIO()
    first = Progress(step(tmp_path, "jars"), tmp_path / "log")
    second = Progress(step(tmp_path, "archive", needs=("jars",)), tmp_path / "other")
    view, both = PlainView(out), [first, second]
    view.show(both, 0.0)
    assert out.getvalue() == ""
    first.state, first.started = State.RUNNING, 1.0
    view.show(both, 1.0)
    (tmp_path / "log").write_text("$ fetch it\n......\nDownloading iceberg.jar\n")
    for now in (2.0, 15.9, 16.0, 17.0):
        view.show(both, now)
    first.state, first.ended, second.state, second.started = State.DONE, 20.0, State.RUNNING, 20.0
    view.show(both, 20.0)
    second.state, second.ended = State.FAILED, 21.0
    view.close(both, 21.0)
    assert out.getvalue().splitlines() == [
        "  jars: the jars",
        "  jars: 15 s, Downloading iceberg.jar",
        "  jars: done after 19 s",
        "  archive: the archive",
        "  archive: failed after 1 s",
    ]


def drawn(text: str) -> list[str]:
    """Return the drawn lines without the codes that clear the rest of each."""
    return text.replace("\r", "").replace("\x1b[K", "").splitlines()


def test_a_terminal_shows_one_line_for_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    first = Progress(step(tmp_path, "jars"), tmp_path / "log", State.RUNNING, 1.0)
    second = Progress(step(tmp_path, "archive", needs=("jars",)), tmp_path / "other")
    view, both = TerminalView(out), [first, second]
    (tmp_path / "log").write_text(f"Downloading {'x' * 200}\n")
    view.show(both, 3.0)
    first_row, second_row = drawn(out.getvalue())
    assert first_row.startswith("  ⠙ jars       2 s  the jars · Downloading xxx")
    assert second_row == "  · archive         the archive · waits for jars"
    assert max(map(len, (first_row, second_row))) < 60
    view.show(both, 3.01)
    assert len(drawn(out.getvalue())) == 2, "not at every look"
    first.state, first.ended = State.DONE, 4.0
    view.close(both, 4.0)
    assert drawn(out.getvalue())[2].startswith("\x1b[2A  ✓ jars       3 s")


def test_the_live_view_is_for_terminals_that_can_draw_it() -> None:
    main, secondary = pty.openpty()
    with os.fdopen(main, "rb"), os.fdopen(secondary, "w") as terminal:
        assert isinstance(choose_view(terminal, {"TERM": "xterm"}.get), TerminalView)
        assert isinstance(choose_view(terminal, {"TERM": "dumb"}.get), PlainView)
    assert isinstance(choose_view(io.StringIO(), {"TERM": "xterm"}.get), PlainView)


def test_a_run_on_a_terminal_ends_with_every_step_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    main, secondary = pty.openpty()
    output: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(main, 4096):
                output.append(data)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(secondary, "w") as terminal:
        runner = Runner([step(tmp_path, "a"), step(tmp_path, "b", needs=("a",))], tmp_path, TerminalView(terminal))
        assert runner.run() is None
    reader.join(LIMIT)
    os.close(main)
    last = drawn(b"".join(output).decode().split("\x1b[2A")[-1])
    assert [line.split()[:2] for line in last] == [["✓", "a"], ["✓", "b"]]
