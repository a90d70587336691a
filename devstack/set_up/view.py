"""Show the progress of the set-up: a live view on a terminal, plain lines elsewhere."""

import os
import shutil
from collections.abc import Callable
from typing import TextIO

from devstack.set_up.runner import Progress, State, View

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS = {State.WAITING: "·", State.DONE: "✓", State.FAILED: "✗", State.STOPPED: "-"}
_COLORS = {State.DONE: "32", State.FAILED: "31", State.RUNNING: "36", State.STOPPED: "33", State.WAITING: "2"}
_REDRAW = 0.2
_QUIET = 15.0
"""Time, in seconds, after which a plain view repeats that a step is running."""


class PlainView:
    """A view that prints a line when a step starts, when it ends, and by default every 15 seconds in between."""

    def __init__(self, out: TextIO, *, quiet: float = _QUIET) -> None:
        self._out, self._quiet = out, quiet
        self._shown: dict[str, State] = {}
        self._last: dict[str, float] = {}

    def show(self, progress: list[Progress], now: float) -> None:
        """Print new states, and repeat the steps that are running for long."""
        for each in progress:
            name, state = each.step.name, each.state
            if self._shown.get(name, State.WAITING) is not state:
                if state is not State.WAITING and self._shown.get(name, State.WAITING) is State.WAITING:
                    self._print(f"{name}: {each.step.title}", now, name)
                if state is not State.RUNNING:
                    self._print(f"{name}: {state.value} after {each.seconds(now):.0f} s", now, name)
                self._shown[name] = state
            elif state is State.RUNNING and now - self._last[name] >= self._quiet:
                detail = each.detail()
                self._print(f"{name}: {each.seconds(now):.0f} s{f', {detail}' if detail else ''}", now, name)

    def close(self, progress: list[Progress], now: float) -> None:
        """Print the final states of the steps."""
        self.show(progress, now)

    def _print(self, line: str, now: float, name: str) -> None:
        self._last[name] = now
        print(f"  {line}", file=self._out, flush=True)


class TerminalView:
    """A view with one line for each step, redrawn in place on the terminal."""

    def __init__(self, out: TextIO, *, redraw: float = _REDRAW) -> None:
        self._out, self._redraw = out, redraw
        self._lines, self._drawn, self._frame = 0, -1e9, 0
        self._color = "NO_COLOR" not in os.environ

    def show(self, progress: list[Progress], now: float) -> None:
        """Redraw the lines, at most a few times a second."""
        if now - self._drawn >= self._redraw:
            self._draw(progress, now)

    def close(self, progress: list[Progress], now: float) -> None:
        """Draw the final state, which stays on the terminal."""
        self._draw(progress, now)

    def _draw(self, progress: list[Progress], now: float) -> None:
        self._drawn, self._frame = now, self._frame + 1
        width = shutil.get_terminal_size().columns - 1
        names = max((len(each.step.name) for each in progress), default=0)
        up = f"\x1b[{self._lines}A" if self._lines else ""
        rows = [self._row(each, progress, names, width, now) for each in progress]
        self._out.write(up + "".join(f"\r{row}\x1b[K\n" for row in rows))
        self._out.flush()
        self._lines = len(rows)

    def _row(self, each: Progress, progress: list[Progress], names: int, width: int, now: float) -> str:
        mark = _MARKS.get(each.state) or _SPINNER[self._frame % len(_SPINNER)]
        seconds = "" if each.state is State.WAITING else f"{each.seconds(now):.0f} s"
        text = each.step.title
        if each.state is State.RUNNING:
            text = " · ".join(part for part in (text, each.detail()) if part)
        elif each.state is State.WAITING:
            waits = [one.step.name for one in progress if one.state is not State.DONE]
            text += f" · waits for {', '.join(name for name in each.step.needs if name in waits)}"
        elif each.state is not State.DONE:
            text += f" · {each.state.value}"
        row = f"  {mark} {each.step.name:{names}}  {seconds:>5}  {text}"[:width]
        return f"\x1b[{_COLORS[each.state]}m{row}\x1b[0m" if self._color else row


def choose_view(out: TextIO, environment: Callable[[str], str | None] = os.environ.get) -> View:
    """Return the live view if the output is a terminal that can draw it, else the plain view."""
    if out.isatty() and environment("TERM") not in {None, "", "dumb"}:
        return TerminalView(out)
    return PlainView(out)
