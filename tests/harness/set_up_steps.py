"""Steps of a set-up that tests run: programs of a line, with stamps in a folder."""

import sys
from pathlib import Path

from devstack.set_up.runner import Progress, Runner, State
from devstack.set_up.step import Stamp, Step
from devstack.set_up.view import PlainView


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
