"""The class-data archive of Spark, which a process in the background creates after the set-up.

A Spark that starts earlier starts without the archive, in about twice the time.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from devstack.set_up.step import Stamp, fingerprint


class SparkArchive:
    """The archive of one copy of the project in one home."""

    def __init__(self, root: Path, home: Path) -> None:
        self._root, self._home, self._venv = root, home, root / ".venv"
        self._folder, self._lock = home / "cds", home / "archive.lock"
        self.log = home / "logs" / "setup-archive.log"
        self.stamp = Stamp(self._folder / "installed", self._made_from)
        """Written by the process when it ends, also if no archive could be made."""

    def start(self) -> bool:
        """Start the process if it is needed and does not run. Return True if it was started."""
        if self.stamp.is_valid():
            return False
        for folder in (self._folder, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        command = (str(self._venv / "bin" / "python"), "-m", "devstack.spark", str(self._root), str(self._home))
        with self._lock.open("a+") as lock, self.log.open("wb") as log:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            lock.truncate(0)  # `stop` never ends the process of an earlier archive
            process = subprocess.Popen(
                command,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock.fileno(),),  # the lock is held as long as the process lives
            )
            lock.write(str(process.pid))
        return True

    def wait(self) -> None:
        """Wait until no process creates the archive."""
        with suppress(FileNotFoundError), self._lock.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    def stop(self) -> None:
        """End the process, if it runs, and its Spark: what it reads is about to change."""
        with suppress(FileNotFoundError), self._lock.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if process := lock.read():  # empty if set-up was killed between its start and this record of it
                    with suppress(ProcessLookupError):
                        os.killpg(int(process), signal.SIGKILL)
        self.wait()

    def _made_from(self) -> str:
        """Return a fingerprint of the jars, of Java, and of the presence of an archive that was not discarded."""
        jars = (self._home / "jars" / purpose / "installed" for purpose in ("spark", "s3"))
        inputs = (*jars, self._venv / "installed")
        java = os.environ.get("JAVA_HOME") or os.path.realpath(shutil.which("java") or "")
        times = (str(each.stat().st_mtime_ns) for each in inputs if each.exists())
        return fingerprint(*times, java, str(any(self._folder.glob("*.size"))))
