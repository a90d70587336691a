"""The view of a followed run in a terminal: a pseudo-terminal, read by a terminal emulator."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pyte
import pytest

from devstack.stack import ROOT

_FOLLOW = """
import time
from rich.console import Console
from cli.run.watch import ShownStatus
from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import RunResult, RunStatus, StageEvent

stages = [
    ("opening", "wap/orders/4f6b2a1c9d3e/a1"), ("writing", "wap/orders/4f6b2a1c9d3e/a1"),
    ("auditing", "7 checks of 2 tables"), ("waiting for approval", "2 needed until 2026-11-22 07:45 UTC"),
    ("ended", "rejected"),
]
check = CheckResult(
    table="sales.orders_of_the_archive", check="accepted_values", columns=["state"], verdict="fail",
    observed="12 of 48,231 rows", expected="one of new, paid, sent, returned, cancelled", answered_by="duckdb",
)
ana, ben = Decision(approve=True, by="ana", at="2026-11-22T07:40:00"), Decision(approve=False, by="ben")
console = Console()
shown = ShownStatus(console)
with console.status("starting") as line:
    for number in range(1, len(stages) + 1):
        for decisions in [[ana], [ana, ben]] if number == 4 else [[]]:
            events = [StageEvent(stage=s, at=f"2026-11-22T07:32:5{i}", note=n) for i, (s, n) in enumerate(stages)]
            result = RunResult(
                run_id="r", workflow_id="orders-4f6b2a1c9d3e", pipeline="orders",
                checks=[check] if number >= 3 else [], approval=ApprovalRecord(required=2, decisions=decisions),
            )
            deadline = "2026-11-22T07:45:00+00:00"
            shown.update(
                RunStatus(stage=stages[number - 1][0], events=events[:number], result=result, deadline=deadline)
            )
            line.update(f"{number:5}s  a progress that is short")
            time.sleep(0.15)
"""


def screen_of(columns: int) -> list[str]:
    """Run the program in a terminal of this width; return the lines that a person sees at its end."""
    person_side, program_side = pty.openpty()
    fcntl.ioctl(program_side, termios.TIOCSWINSZ, struct.pack("HHHH", 60, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    environment.pop("COLUMNS", None)
    program = subprocess.Popen(
        [sys.executable, "-c", _FOLLOW],
        stdin=program_side,
        stdout=program_side,
        stderr=program_side,
        env=environment,
        cwd=ROOT,
    )
    os.close(program_side)
    screen = pyte.Screen(columns + 100, 60)  # wider than the program assumes, to make longer lines visible
    stream = pyte.ByteStream(screen)
    while True:
        try:
            received = os.read(person_side, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not received:
            break
        stream.feed(received)
    os.close(person_side)
    assert program.wait() == 0
    return [line.rstrip() for line in screen.display if line.strip()]


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_each_event_is_whole_and_in_its_order(columns: int) -> None:
    lines = screen_of(columns)
    text = " ".join(" ".join(lines).split())
    wanted = [
        "07:32:50 opening wap/orders/4f6b2a1c9d3e/a1",
        "07:32:51 writing wap/orders/4f6b2a1c9d3e/a1",
        "07:32:52 auditing 7 checks of 2 tables",
        "fail sales.orders_of_the_archive accepted_values(state): observed 12 of 48,231 rows, "
        "expected one of new, paid, sent, returned, cancelled (duckdb)",
        "07:32:53 waiting for approval 2 needed until 2026-11-22 07:45 UTC",
        "approved by ana (1 of 2 approvals, waits until 2026-11-22 07:45 UTC)",
        "rejected by ben",
        "07:32:54 ended rejected",
    ]
    positions = [text.find(each) for each in wanted]
    assert -1 not in positions and positions == sorted(positions), lines
    assert all(text.count(each) == 1 for each in wanted)
    assert max(map(len, lines)) <= columns
    assert "a progress" not in text  # the spinner has disappeared at the end
