"""The lines of `list --schedules`."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.schedules.list_schedules import _row


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        ("paused because its run was not started: no file", "paused: its run was not started: no file"),
        ("the source moves", "paused: the source moves"),
        ("", "paused: no note"),
    ],
)
def test_a_paused_schedule_says_so_once(note: str, shown: str) -> None:
    given = SimpleNamespace(name="p", zone="UTC", properties={"cron": "0 4 * * *"})
    missed = SimpleNamespace(late=0, overlapping=0)
    listed = SimpleNamespace(given=given, next=None, last=None, state="refused", missed=missed, paused=note)
    assert _row(cast(Any, listed))[3] == shown
