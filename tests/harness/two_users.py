"""Workers of two system users: `devstack.split_users` run for real, and a Python that both users can run."""

import grp
import os
import pwd
import shlex
import shutil
import site
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from devstack.stack import ROOT
from runtime.telemetry import WORKER_READY
from tests.harness.processes import wait_for
from tests.harness.session_guard import MARK

_NOBODY = 65534
_AS_NOBODY: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
_USES = f"import pyspark, temporalio; open({str(ROOT / 'worker.py')!r}).close()"


def python_for_all(folder: Path) -> Path | str:
    """Return a Python that other users can run with this Python's packages, or the reason why there is none.

    This Python may lie in a home that others cannot enter. Then return the system's, of the same version, in a virtual
    environment with links to these packages. A package that any user can change is copied: the command refuses it.
    """
    refused = _refusal(Path(sys.executable))
    if refused is None:
        return Path(sys.executable)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    system_python = shutil.which(name, path="/usr/local/bin:/usr/bin")
    if system_python is None:
        return f"other users cannot run {sys.executable} ({refused}), and the system has no {name}"
    environment = folder / "venv"
    subprocess.run([system_python, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for package in (each for packages_here in site.getsitepackages() for each in Path(packages_here).iterdir()):
        if any(not path.is_symlink() and path.stat().st_mode & stat.S_IWOTH for path in package.rglob("*")):
            shutil.copytree(package, packages / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (packages / package.name).symlink_to(package)
    python = environment / "bin" / "python"
    refused = _refusal(python)
    return python if refused is None else f"other users cannot use Sluice's packages or code: {refused}"


def _refusal(python: Path) -> str | None:
    try:
        command: list[str | Path] = [python, "-c", _USES]
        done = subprocess.run(command, cwd="/", env={}, capture_output=True, text=True, check=False, **_AS_NOBODY)
    except OSError as error:
        return str(error)
    return (done.stderr.strip().splitlines() or ["it failed"])[-1] if done.returncode else None


@dataclass
class TwoUsers:
    """Two throw-away users, and what the command creates for them in a folder that both can enter. To be removed."""

    settings: Mapping[str, str]
    """The installation's settings, as in its `.env`."""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="sluice-two-users-")))
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.chmod(0o755)
        self.env = self.folder / "given.env"
        self.env.touch(mode=0o600)
        self.control, self.spark, self.group = (f"slu-{kind}-{self.mark}" for kind in ("c", "s", "g"))
        self.home, self.lake = self.folder / "sluice", self.folder / "lake"
        given = {**self.settings, "WAREHOUSE": self.lake}
        self.env.write_text("".join(f"{name}='{value}'\n" for name, value in given.items()))
        self.commands: dict[str, str] = {}
        self.python = Path(sys.executable)

    def command(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command with the names and the folder of these users."""
        names = ("--control", self.control, "--spark", self.spark, "--group", self.group, "--folder", str(self.home))
        arguments = [sys.executable, "-m", "devstack.split_users", *names, *more]
        return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)

    def set_up(self, python: Path, *more: str) -> str:
        """Set the users up; return the command's output."""
        done = self.command("--env", str(self.env), "--python", str(python), *more)
        assert done.returncode == 0, done.stderr
        for role in ("control", "spark"):
            self.commands[role] = done.stdout.split(f"# Start the {role} worker, as root:\n")[1].split("\n")[0]
        return done.stdout

    def refusal(self, python: Path, *more: str) -> str:
        """Return the reason why the command refuses to set up."""
        done = self.command("--env", str(self.env), "--python", str(python), *more)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done
        return done.stderr

    def start(self, role: str, **environment: str) -> int:
        """Start a worker by the printed command, with an administrator's environment; return its process."""
        log = self.folder / f"{role}.log"
        with log.open("wb") as out:
            worker = subprocess.Popen(
                ["/bin/sh", "-c", self._marked(self.commands[role])],
                env={**os.environ, **environment},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.workers[role] = worker
        wait_for(lambda: WORKER_READY in log.read_text() or worker.poll() is not None, log.read_text)
        assert worker.poll() is None, log.read_text()
        return worker.pid

    @staticmethod
    def _marked(command: str) -> str:
        """Return a command that clears the environment but keeps the mark by which the tests' guard finds it.

        It also keeps the options of the tests' JVMs, which start and end sooner.
        """
        kept = " ".join(f"{name}={shlex.quote(os.environ[name])}" for name in (MARK, "SPARK_SUBMIT_OPTS"))
        return command.replace("env -i ", f"env -i {kept} ", 1)

    def run_as(self, role: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program as a user by the printed command, instead of the worker."""
        words = shlex.split(self.commands[role].partition("exec ")[2])
        return subprocess.run([*words[:-1], *arguments], capture_output=True, text=True, check=False)

    def stop(self) -> None:
        """End the workers; wait until no process of the users runs."""
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.terminate()
                worker.wait(180)
        wait_for(lambda: not self.processes(), lambda: f"processes of the users run on: {self.processes()}", 60)

    def remove(self) -> None:
        """Remove what the command created, as docs/security.md describes, and the folder."""
        self.stop()
        accounts = {user.pw_name for user in pwd.getpwall()} | {group.gr_name for group in grp.getgrall()}
        for command, name in (("userdel", self.control), ("userdel", self.spark), ("groupdel", self.group)):
            if name in accounts:
                subprocess.run([command, name], check=True)
        shutil.rmtree(self.folder)

    def processes(self) -> list[int]:
        """Return the processes of the users."""
        return [each.pid for each in psutil.process_iter(["username"]) if self.mark in (each.info["username"] or "")]


def mode_of(path: Path) -> str:
    """Return owner and mode of a file, such as `root 640`."""
    status = path.stat()
    return f"{pwd.getpwuid(status.st_uid).pw_name} {stat.S_IMODE(status.st_mode):o}"
