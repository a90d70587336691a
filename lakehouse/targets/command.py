"""Run the operator's command on the event of a publication."""

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from sluice.contracts.registration import PublicationEvent
from sluice.errors import BadEnvironment, CommandFailed
from sluice.redaction import redacted
from sluice.registration.events import event_body
from sluice.registration.target_kinds import CommandTarget

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
_KEPT = 16 * 1024
"""Number of bytes kept from the end of the output."""
_SHOWN = 500
"""Maximum number of characters of the output in a message."""
_AFTER_KILL = 5.0


def run_command(target: CommandTarget, event: PublicationEvent, installation: str, variables: Mapping[str, str]) -> str:
    """Run the command once, without a shell, with the event as JSON on its standard input; return its exit code.

    The command runs in its own session and in an empty folder of its own. Processes that it leaves running are killed.

    Args:
        variables: the worker's environment. The command inherits a fixed set of variables, and those that the target
            names.

    Raises:
        CommandFailed: it exits with another code than 0, or takes too long.
        BadEnvironment: it cannot be started.
    """
    given = {name: variables[name] for name in (*_INHERITED, *target.environment) if name in variables}
    with tempfile.TemporaryDirectory(prefix="sluice-command-") as folder:
        try:
            process = subprocess.Popen(
                target.command,
                cwd=folder,
                env=given,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            name = Path(target.command[0]).name
            raise BadEnvironment(f"the command {name} cannot be started: {error.strerror or error}") from None
        hidden = [variables[name] for name in target.environment if variables.get(name)]
        return _ended(process, event_body(event, installation), target.timeout, hidden)


def _ended(process: subprocess.Popen[bytes], body: bytes, timeout: float, hidden: Sequence[str]) -> str:
    """Wait for the end of a command; return how it ended.

    Args:
        hidden: values of environment variables that the target names. The output may repeat them, so they are masked.

    Raises:
        CommandFailed: it failed, or took too long.
    """
    assert process.stdin and process.stdout
    output = _OutputEnd(process.stdout)
    threads = [
        threading.Thread(target=_write, args=(process.stdin, body), daemon=True),
        threading.Thread(target=output.read, daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        code: int | None = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _kill_session(process)
    for thread in threads:
        thread.join(_AFTER_KILL)  # a process that left the session may keep the pipe open
    if code == 0:
        return "exit code 0"
    how = f"it took longer than {timeout:g} s" if code is None else f"exit code {code}"
    text = output.text()
    for value in hidden:
        text = text.replace(value, "***")
    shown = redacted(text).strip()[-_SHOWN:]
    raise CommandFailed(f"{how}; its output ends with: {shown}" if shown else how)


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_AFTER_KILL)


def _write(pipe: IO[bytes], body: bytes) -> None:
    with suppress(OSError, ValueError):  # the command need not read all of it
        pipe.write(body)
    with suppress(OSError, ValueError):
        pipe.close()


class _OutputEnd:
    """The end of a command's output. Earlier output is read and dropped, whatever its size."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe, self._end = pipe, b""

    def read(self) -> None:
        """Read until the pipe is closed."""
        with suppress(OSError, ValueError):
            while part := os.read(self._pipe.fileno(), 65536):
                self._end = (self._end + part)[-_KEPT:]

    def text(self) -> str:
        """Return the end of the output, without a first line that may be cut: half a secret could not be masked."""
        text = self._end.decode(errors="replace")
        return text.partition("\n")[2] if len(self._end) == _KEPT else text
