"""Random sequences of commands, as state machines of Hypothesis: their number, and the system they run on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

STEPS = 10
"""Maximum number of commands in a sequence."""
THOUSAND = pytest.mark.parametrize("number", [250] * 4, ids=[f"part {part} of 4" for part in range(1, 5)])
"""A thousand sequences, in parts that processes share: sequences wait for Temporal most of their time."""
_Machine = TypeVar("_Machine", bound="CommandSequence")


class CommandSequence(RuleBasedStateMachine):
    """A sequence of commands. Each command runs to its end."""

    run_coroutine: ClassVar[Callable[[Any], Any]]
    """A function that runs a coroutine to its end."""
    new_driver: ClassVar[Callable[..., Any]]
    """A function that returns a driver with a table of its own."""

    def _run(self, coroutine: Any) -> Any:
        return type(self).run_coroutine(coroutine)


def machine(of: type[_Machine], run: Callable[[Any], Any], new_driver: Callable[..., Any]) -> type[_Machine]:
    """Return a machine that runs on a system.

    Args:
        run: runs a coroutine of its drivers to its end.
    """
    members = {"run_coroutine": staticmethod(run), "new_driver": staticmethod(new_driver)}
    return type(of.__name__, (of,), members)


def new_folder(folder: Path, name: str) -> Path:
    """Create the folder of one sequence."""
    files = folder / name
    files.mkdir(parents=True)
    return files


@st.composite
def one_of(draw: st.DrawFn, values: Callable[[], Sequence[str]]) -> str:
    """Draw one of the values that a function returns at that moment. `st.deferred` would keep those of its first use.

    Args:
        values: a function, so that a test can restrict the values.
    """
    return draw(st.sampled_from(values()))


def sequences(number: int, *, same: bool = False, steps: int = STEPS) -> settings:
    """Return the settings of Hypothesis. `same` draws the same sequences each time, for tests of every change."""
    return settings(
        max_examples=number,
        derandomize=same,
        stateful_step_count=steps,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
