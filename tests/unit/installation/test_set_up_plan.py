"""The command of the set-up: its plan, its settings, and its advice after a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from devstack.set_up import __main__ as command
from devstack.set_up.advice import advise
from devstack.set_up.plan import PURPOSES, Plan
from devstack.set_up.registry import parse_pip_settings
from devstack.set_up.step import Step, bytes_in, fingerprint, log_tail, steps_to_run
from devstack.stack import ROOT
from tests.harness.set_up_steps import python, step


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
    for folder in ("locks", "devstack"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    steps = {each.name: each for each in Plan(tmp_path, tmp_path / "home", purpose).steps()}
    missing = steps_to_run(steps.values(), ["spark-jars", "temporal"])
    names = [each.name for each in missing]
    assert names.index("packages") < names.index("spark-jars")
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
