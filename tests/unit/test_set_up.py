"""The set-up: parallel steps, second tries, failures, interruptions, and the progress display."""

import fcntl
import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.set_up import __main__ as command
from devstack.set_up.advice import advise
from devstack.set_up.plan import PURPOSES, Plan
from devstack.set_up.registry import parse_pip_settings
from devstack.set_up.runner import Progress, Runner, State
from devstack.set_up.step import Stamp, Step, bytes_in, fingerprint, log_tail, steps_to_run
from devstack.set_up.view import PlainView, TerminalView, choose_view
from devstack.stack import ROOT
from tests.harness.waiting import LIMIT

WAIT_LIMIT = LIMIT


class Silent:
    """A view that shows nothing."""

    def show(self, progress: list[Progress], now: float) -> None:
        """Show nothing."""

    def close(self, progress: list[Progress], now: float) -> None:
        """Show nothing."""


def python(program: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", program, *map(str, arguments))


def step(folder: Path, name: str, *commands: tuple[str, ...], needs: tuple[str, ...] = (), made: str = "1") -> Step:
    return Step(
        name=name,
        title=f"the {name}",
        commands=commands or (python("print('working')"),),
        stamp=Stamp(folder / f"{name}.installed", lambda: made),
        needs=needs,
    )


def run(folder: Path, *steps: Step, view: Silent | PlainView | None = None) -> tuple[Progress | None, dict[str, State]]:
    runner = Runner(steps, folder / "logs", view or Silent(), poll=0.01)
    failed = runner.run()
    return failed, {each.step.name: each.state for each in runner.progress}


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_LIMIT
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


APPEND = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"
MEET = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
while not other.exists():
    time.sleep(0.01)
"""
SLEEP = "import time; print('asleep', flush=True); time.sleep(600)"


def test_a_step_runs_after_those_that_it_needs(tmp_path: Path) -> None:
    order = tmp_path / "order"
    steps = [
        step(tmp_path, "c", python(APPEND, order, "c"), needs=("b",)),
        step(tmp_path, "a", python(APPEND, order, "a1"), python(APPEND, order, "a2")),
        step(tmp_path, "b", python(APPEND, order, "b"), needs=("a",)),
    ]
    failed, states = run(tmp_path, *steps)
    assert failed is None and set(states.values()) == {State.DONE}
    assert order.read_text() == "a1a2bc"


def test_independent_steps_run_side_by_side(tmp_path: Path) -> None:
    """Each of the two steps ends only after the other has begun."""
    one, two = tmp_path / "one", tmp_path / "two"
    failed, states = run(
        tmp_path, step(tmp_path, "one", python(MEET, one, two)), step(tmp_path, "two", python(MEET, two, one))
    )
    assert failed is None and states == {"one": State.DONE, "two": State.DONE}


def test_a_failure_stops_the_others_and_keeps_what_is_done(tmp_path: Path) -> None:
    asleep = tmp_path / "logs" / "setup-slow.log"
    fail = "import pathlib, sys, time\nwhile 'asleep' not in pathlib.Path(sys.argv[1]).read_text():\n time.sleep(.01)\n"
    steps = [
        step(tmp_path, "first"),
        step(tmp_path, "slow", python(SLEEP)),
        step(tmp_path, "bad", python(f"{fail}sys.exit('no luck')", asleep), needs=("first",)),
        step(tmp_path, "after", needs=("bad",)),
    ]
    failed, states = run(tmp_path, *steps)
    assert failed and failed.step.name == "bad" and failed.exit_code == 1
    assert log_tail(failed.log, 1) == ["no luck"]
    assert states == {"first": State.DONE, "slow": State.STOPPED, "bad": State.FAILED, "after": State.WAITING}
    assert [each.name for each in steps_to_run(steps, ["after", "slow"])] == ["bad", "after", "slow"]


def test_a_second_try_repeats_only_what_is_missing(tmp_path: Path) -> None:
    output = tmp_path / "output"

    def steps(made: str = "1") -> list[Step]:
        needed = step(tmp_path, "needed")
        goal = step(tmp_path, "goal", python(APPEND, output, "x"), needs=("needed",), made=made)
        return [needed, Step(**{**goal.__dict__, "output": output})]

    def missing(made: str = "1") -> list[str]:
        return [each.name for each in steps_to_run(steps(made), ["goal"])]

    assert missing() == ["needed", "goal"]
    run(tmp_path, *steps())
    assert missing() == []
    assert missing(made="of another lock file") == ["goal"]
    (tmp_path / "needed.installed").unlink()
    assert missing() == [], "nothing needs it any more"
    output.unlink()
    assert missing() == ["needed", "goal"]


def test_a_step_without_its_output_has_failed(tmp_path: Path) -> None:
    bare = step(tmp_path, "bare")
    failed, _ = run(tmp_path, Step(**{**bare.__dict__, "output": tmp_path / "nothing"}))
    assert failed and not bare.is_done()
    assert "the commands succeeded, but" in log_tail(failed.log, 1)[0]


def test_a_command_that_does_not_exist_has_failed(tmp_path: Path) -> None:
    failed, _ = run(tmp_path, step(tmp_path, "absent", ("/no/such/program",)))
    assert failed and failed.exit_code == 127 and "No such file" in log_tail(failed.log, 1)[0]


def test_a_stamp_is_gone_while_its_step_runs(tmp_path: Path) -> None:
    again = step(
        tmp_path,
        "again",
        python("import sys, pathlib; sys.exit(pathlib.Path(sys.argv[1]).exists())", tmp_path / "again.installed"),
    )
    again.stamp.write()
    failed, _ = run(tmp_path, again)
    assert failed is None and again.is_done()


RUNNER = """
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
sys.path.insert(0, sys.argv[1])
from devstack.set_up import __main__ as command
from devstack.set_up.step import Stamp, Step
folder = pathlib.Path(sys.argv[2])
sleep = (sys.executable, "-S", "-c", "import os, time; print('asleep', os.getpid(), flush=True); time.sleep(600)")
class Plan:
    def __init__(self, *_): pass
    def missing(self):
        return [Step("slow", "the slow one", (sleep,), Stamp(folder / "slow.installed", str))]
command.Plan = Plan
command.home_folder = lambda _: folder
sys.exit(command.main(["use"]))
"""


@pytest.fixture
def slow_set_up(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A set-up in a process of its own, in the middle of a step that does not end."""
    process = subprocess.Popen(
        python(RUNNER, ROOT, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    log = tmp_path / "logs" / "setup-slow.log"
    wait_for(lambda: log.exists() and "\nasleep" in log.read_text())
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def is_locked(folder: Path) -> bool:
    with (folder / "setup.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_set_up_leaves_no_process_and_no_stamp(
    tmp_path: Path, slow_set_up: subprocess.Popen[str], number: signal.Signals
) -> None:
    slow_set_up.send_signal(number)
    _, error = slow_set_up.communicate(timeout=WAIT_LIMIT)
    assert slow_set_up.returncode == command.INTERRUPTED
    assert "interrupted. Run it again" in error
    assert not (tmp_path / "slow.installed").exists()
    wait_for(lambda: not is_locked(tmp_path))  # a process that was just killed may still be ending


def test_what_a_killed_set_up_leaves_behind_holds_the_lock(tmp_path: Path, slow_set_up: subprocess.Popen[str]) -> None:
    assert is_locked(tmp_path) and (tmp_path / "setup.lock").read_text() == str(slow_set_up.pid)
    slow_set_up.kill()
    slow_set_up.wait()
    assert is_locked(tmp_path), "a second set-up would work beside the rest of the first"
    assert not (tmp_path / "slow.installed").exists()
    words = (tmp_path / "logs" / "setup-slow.log").read_text().split()
    os.kill(int(words[-1]), signal.SIGKILL)
    wait_for(lambda: not is_locked(tmp_path))


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
    reader.join(WAIT_LIMIT)
    os.close(main)
    last = drawn(b"".join(output).decode().split("\x1b[2A")[-1])
    assert [line.split()[:2] for line in last] == [["✓", "a"], ["✓", "b"]]


class FailingPlan:
    """A plan with one step that fails as on a machine without a network."""

    def __init__(self, _: Path, home: Path, __: str) -> None:
        failing = python("import sys; print('x'); sys.exit('error: dns error: failed to lookup address')")
        self._steps = [step(home, "packages", failing)]

    def missing(self) -> list[Step]:
        """Return the step."""
        return self._steps


def test_a_failure_names_the_step_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "Plan", FailingPlan)
    assert command.set_up(tmp_path, tmp_path, "use") == command.FAILED == 7
    out, error = capsys.readouterr()
    assert out.startswith("Setting up what is needed to run pipelines on this machine (once). Logs: ")
    assert "packages: failed after 0 s" in out
    assert "set-up failed in the step packages: the packages; exit code 1." in error
    assert "setup-packages.log:" in error and "    error: dns error" in error
    assert "What to do: A package registry could not be reached." in error
    assert "Steps that are done are not repeated." in error


@pytest.mark.parametrize(
    ("log", "advice"),
    [
        ("error: failed to write: No space left on device (os error 28)", "The disk is full"),
        ("because ensurepip is not\navailable", "The log says why"),
        ("No module named 'ensurepip'", "apt-get install python3-venv"),
        ("Hash mismatch for pyspark==4.1.4", "not the one that the lock file names"),
        ("java.net.UnknownHostException: somewhere", "could not be reached"),
        ("tcp connect error: Connection refused", "could not be reached"),
        ("invalid peer certificate: UnknownIssuer", "TLS certificate"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "cannot be written"),
        ("there is no Temporal CLI. Tried in this order:", "TEMPORAL_CLI_PATH"),
        ("something else", "The log says why"),
    ],
)
def test_advice_follows_the_log(log: str, advice: str) -> None:
    assert advice in advise(log)


def test_settings_of_pip_hold_for_uv() -> None:
    listed = (
        ":env:.cert='/certificates.crt'\nglobal.index-url='https://mirror.invalid/'\n"
        "install.index-url='https://other.invalid/'\nglobal.extra-index-url='\\nhttps://a\\nhttps://b'\nglobal.timeout='9'"
    )
    assert parse_pip_settings(listed) == {
        "UV_DEFAULT_INDEX": "https://other.invalid/",
        "UV_INDEX": "https://a https://b",
        "SSL_CERT_FILE": "/certificates.crt",
    }


def test_set_up_needs_nothing_but_the_standard_library() -> None:
    """It runs before anything is installed: `-S` removes the installed packages."""
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import devstack.set_up.__main__"
    subprocess.run([sys.executable, "-S", "-c", command], check=True)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_plan_of_a_fresh_machine(purpose: str, tmp_path: Path) -> None:
    steps = {each.name: each for each in Plan(ROOT, tmp_path, purpose).steps()}
    missing = steps_to_run(steps.values(), ["archive", "temporal"])
    names = [each.name for each in missing]
    assert names.index("spark-jars") < names.index("archive")
    assert all(need in steps for each in steps.values() for need in each.needs)
    assert any("dev.txt" in word for word in steps["packages"].commands[-1]) == (purpose in {"python", "develop"})
    assert all("--require-hashes" in each.commands[-1] for each in (steps["packages"], steps["installer"]))


def test_development_packages_serve_users_too(tmp_path: Path) -> None:
    (tmp_path / "locks").symlink_to(ROOT / "locks")
    (tmp_path / "devstack").symlink_to(ROOT / "devstack")

    def packages(purpose: str) -> Step:
        return next(each for each in Plan(tmp_path, tmp_path / "home", purpose).steps() if each.name == "packages")

    def clears(purpose: str) -> bool:
        return any("--clear" in one for one in packages(purpose).commands)

    assert clears("use") and clears("develop")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    packages("use").stamp.write()
    assert packages("use").is_done() and not packages("develop").is_done()
    assert not clears("develop"), "the packages for users are whole, and the tools go on top"
    packages("develop").stamp.write()
    assert packages("use").is_done() and packages("develop").is_done()
    packages("use").stamp.file.write_text("half of it")
    assert clears("develop") and clears("use")


def test_the_home_is_that_of_the_environment_or_of_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_HOME", raising=False)
    assert command.home_folder(tmp_path) == tmp_path / ".sluice"
    (tmp_path / ".env").write_text("A=1\nSLUICE_HOME='lake home'\n# SLUICE_HOME=no\n")
    assert command.home_folder(tmp_path) == tmp_path / "lake home"
    monkeypatch.setenv("SLUICE_HOME", "/elsewhere")
    assert command.home_folder(tmp_path) == Path("/elsewhere")


def test_an_unknown_purpose_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["everything"]) == 2
    assert "devstack.set_up develop" in capsys.readouterr().err


def test_a_log_is_shown_without_rows_of_dots(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"one\n{'.' * 1000} (47177kB)\n\n{'.' * 90}\n")
    assert log_tail(log, 5) == ["one", "… (47177kB)"]
    assert log_tail(tmp_path / "none", 5) == []
    assert bytes_in(tmp_path) == log.stat().st_size
    assert fingerprint(log, "a") != fingerprint(log, "b")
