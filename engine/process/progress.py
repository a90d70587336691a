"""Read the output of a Spark job: its progress bar, and the lines that go into the log."""

import re
from collections import deque

from sluice.contracts.progress import Progress
from sluice.redaction import line_redactor

_PROGRESS_BAR = re.compile(r"\[Stage (\d+):[=> ]*\((\d+) \+ (\d+)\) / (\d+)\]")
_DRIVER_STATE = re.compile(r"Application (?:report|status) for (\S+) \((?:state|phase): (\w+)\)")
"""The line with the state of a driver that spark-submit prints in cluster mode, on YARN and on Kubernetes."""
_STACK_FRAME = re.compile(r"\s*(at [\w.$/<>@-]+\(|\.\.\. \d+ more)")
_TAIL_LINES = 60
_LINE_LIMIT = 4000
_JOB_PREFIX = "sluice: "
"""Prefix of the lines that report the progress of a built-in job (`spark_jobs/job.py`)."""


class OutputReader:
    """A reader that splits the output of a job into lines and progress, piece by piece as the output arrives."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._incomplete_line = ""
        self._redact = line_redactor()

    def feed(self, chunk: bytes) -> list[str]:
        """Read a piece of output; return the lines that are complete now, without progress bars."""
        pieces = re.split(r"[\r\n]", self._incomplete_line + chunk.decode("utf-8", errors="replace"))
        self._incomplete_line = pieces.pop()[-_LINE_LIMIT:]
        return [line for piece in pieces if (line := self._read_line(piece)) is not None]

    def close(self) -> list[str]:
        """Return the last line, if it had no line end."""
        return self.feed(b"\n")

    def _read_line(self, text: str) -> str | None:
        bars = list(_PROGRESS_BAR.finditer(text))
        for bar in bars:
            stage, done, running, total = (int(part) for part in bar.groups())
            self._update(stage=stage, tasks_done=done, tasks_running=running, tasks=total)
        line = self._redact(_PROGRESS_BAR.sub("", text).rstrip() if bars else text.rstrip())
        if not line.strip():
            return None
        if state := _DRIVER_STATE.search(line):
            self._update(doing=f"{state[1]}: {state[2].lower()}")
            return line
        if line.startswith(_JOB_PREFIX):
            self._update(doing=line.removeprefix(_JOB_PREFIX))
        if not _STACK_FRAME.match(line):  # Java's stack traces would push the error itself out of the tail
            self.tail.append(line[:_LINE_LIMIT])
        return line

    def _update(self, **changed: int | str) -> None:
        self.progress = self.progress.model_copy(update=changed)
