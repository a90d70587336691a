"""Reading what Spark prints: its progress bar on one hand, lines for the log on the other."""

import re
from collections import deque

from sluice.contracts.progress import Progress
from sluice.secrets import redacted

_BAR = re.compile(r"\[Stage (\d+):[=> ]*\((\d+) \+ (\d+)\) / (\d+)\]")
_REPORT = re.compile(r"Application (?:report|status) for (\S+) \((?:state|phase): (\w+)\)")
"""What a client says of a driver far away: on YARN, on Kubernetes."""
_FRAME = re.compile(r"\s*(at [\w.$/<>@-]+\(|\.\.\. \d+ more)")
_TAIL_LINES = 60
_LINE_LIMIT = 4000


SAYS = "sluice: "
"""What a line of the built-in jobs begins with when it says what the job does now."""


class OutputReader:
    """Splits the output of a job into lines and progress. Feed it bytes as they come."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._rest = ""

    def feed(self, chunk: bytes) -> list[str]:
        """Take a piece of output; return the whole lines that it completed, without progress bars."""
        pieces = re.split(r"[\r\n]", self._rest + chunk.decode("utf-8", errors="replace"))
        self._rest = pieces.pop()[-_LINE_LIMIT:]
        return [line for piece in pieces if (line := self._line(piece)) is not None]

    def close(self) -> list[str]:
        """Return what is left after the last piece."""
        return self.feed(b"\n")

    def _line(self, piece: str) -> str | None:
        bars = list(_BAR.finditer(piece))
        for bar in bars:
            stage, done, running, total = (int(part) for part in bar.groups())
            self._update(stage=stage, tasks_done=done, tasks_running=running, tasks=total)
        line = redacted(_BAR.sub("", piece).rstrip() if bars else piece.rstrip())
        if not line.strip():
            return None
        if report := _REPORT.search(line):
            self._update(doing=f"{report[1]}: {report[2].lower()}")
            return line
        if line.startswith(SAYS):
            self._update(doing=line.removeprefix(SAYS))
        if not _FRAME.match(line):  # a stack trace of Java would leave no room for what it is about
            self.tail.append(line[:_LINE_LIMIT])
        return line

    def _update(self, **changed: int | str) -> None:
        self.progress = self.progress.model_copy(update=changed)
