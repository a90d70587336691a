"""The command behind `make setup`: install everything that is missing for a purpose.

    python3 -m devstack.set_up use        to run pipelines on this machine
    python3 -m devstack.set_up develop    to run every test
    python3 -m devstack.set_up python     to run lint, types and unit tests
    python3 -m devstack.set_up s3         to read and write S3
    python3 -m devstack.set_up store      to read and write S3 on this machine

Exit codes: 0 if everything is installed, 7 if a step failed or the machine lacks something, 130 if interrupted.
"""

import fcntl
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from devstack.errors import StackError
from devstack.set_up.advice import advise
from devstack.set_up.plan import PURPOSES, WITH_SPARK_JARS, Plan
from devstack.set_up.runner import Progress, Runner
from devstack.set_up.spark_archive import SparkArchive
from devstack.set_up.step import Step, log_tail
from devstack.set_up.view import choose_view
from sluice.errors import SluiceError

ROOT = Path(__file__).resolve().parents[2]
OK, FAILED, INTERRUPTED = 0, 7, 130
_IN_BACKGROUND = "An archive of Spark's classes is made in the background for a minute; Spark then starts sooner"
_HOME = re.compile(r"^(?:export )?SLUICE_HOME=['\"]?([^'\"\n]+)", re.M)


def set_up(root: Path, home: Path, purpose: str) -> int:
    """Run the steps that are missing for a purpose; return the exit code."""
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / "setup.lock") as lock:
        steps, archive = Plan(root, home, purpose).missing(), SparkArchive(root, home)
        if steps:
            archive.stop()
            if not _run(steps, home, purpose, lock):
                return FAILED
        if purpose in WITH_SPARK_JARS and archive.start():
            print(f"{_IN_BACKGROUND} ({_short(archive.log)}).", flush=True)
        return OK


def _run(steps: list[Step], home: Path, purpose: str, lock: int) -> bool:
    """Run the steps. Return False if one failed, after its explanation."""
    began, logs = time.monotonic(), home / "logs"
    print(f"Setting up what is needed to {PURPOSES[purpose]} (once). Logs: {_short(logs)}/setup-*.log", flush=True)
    failed = Runner(steps, logs, choose_view(sys.stdout), keep_open=lock).run()
    if failed:
        _explain(failed)
        return False
    print(f"Set up in {time.monotonic() - began:.0f} s.", flush=True)
    return True


def home_folder(root: Path) -> Path:
    """Return the folder for tools and data: SLUICE_HOME from the environment or from `.env`, else `.sluice`."""
    named = os.environ.get("SLUICE_HOME")
    if not named and (root / ".env").is_file():
        match = _HOME.search((root / ".env").read_text())
        named = match[1].strip() if match else None
    return root / (named or ".sluice")


def _explain(failed: Progress) -> None:
    """Print the failed step, the end of its log, and advice."""
    end = log_tail(failed.log, 12)
    lines = [
        f"sluice: set-up failed in the step {failed.step.name}: {failed.step.title}; exit code {failed.exit_code}.",
        f"The end of its log, {_short(failed.log)}:",
        *(f"    {line[:300]}" for line in end),
        f"What to do: {advise(chr(10).join(end))}",
        "Then run the same command again. Steps that are done are not repeated.",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _short(path: Path) -> str:
    return os.path.relpath(path)


@contextmanager
def _locked(file: Path) -> Iterator[int]:
    """Let only one set-up at a time work in this home. If this process dies, the steps' processes keep the lock."""
    with file.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            other = lock.read().strip() or "?"
            print(f"Another set-up is running here (process {other}). Waiting for its end.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield lock.fileno()


def _interrupt(number: int, _: object) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(arguments: list[str]) -> int:
    """Run the command."""
    if len(arguments) != 1 or arguments[0] not in PURPOSES:
        print(__doc__, file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    os.chdir(ROOT)
    try:
        return set_up(ROOT, home_folder(ROOT), arguments[0])
    except KeyboardInterrupt:
        print("\nsluice: set-up was interrupted. Run it again: steps that are done are not repeated.", file=sys.stderr)
        return INTERRUPTED
    except (StackError, SluiceError) as error:
        print(f"sluice: {error}", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
