"""Services and worker are killed while a backfill runs, is repeated and repaired: each row is on main exactly once."""

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devstack.stack import Stack
from tests.harness.backfilled_rides import BackfilledRides, month_number
from tests.harness.kills import kill_service, repeatedly
from tests.harness.lake import LakeReader
from tests.harness.processes import wait_for
from tests.harness.rides import assert_each_once
from tests.harness.system import SystemHarness, own_stack

MONTHS = [f"2018-{month:02}" for month in range(9, 13)] + [f"2019-{month:02}" for month in range(1, 5)]
BAD = "2019-02"
NAME = "together"
SEED = 16


@pytest.fixture
def unstable_stack(tmp_path: Path) -> Iterator[Stack]:
    with own_stack(tmp_path) as stack:
        yield stack


class KilledBackfill:
    """A backfill of eight months on a stack of its own; Temporal, Nessie and the worker are killed at random."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        more = {"SLUICE_HEARTBEAT_TIMEOUT": "5", "SLUICE_ACTIVITY_TIMEOUT": "8", "SPARK_ENGINE": "connect"}
        environment = {**os.environ, **stack.up(with_worker=False), "SLUICE_HOME": str(stack.home), **more}
        self.rides = BackfilledRides(SystemHarness(folder, environment), folder, MONTHS, BAD)
        self.lake = LakeReader(environment)
        self._stack, self.kills = stack, dict.fromkeys(("nessie", "temporal", "worker"), 0)

    def kill(self, draw: random.Random) -> None:
        """Kill one of the three, and start it again."""
        victim = draw.choice(sorted(self.kills))
        self.kills[victim] += 1
        if victim == "worker":
            self.rides.kill_worker()
        else:
            kill_service(self._stack, victim, away=draw.uniform(0, 3))

    def try_command(self, *arguments: str) -> dict[str, Any]:
        """Run a command of a backfill; return nothing if Temporal or the worker is unavailable."""
        done = self.rides.system.command("backfill", *arguments, "--json")
        assert done.code in (0, 2, 3, 6, 7), (done.code, done.err)
        return json.loads(done.out) if done.code in (0, 3, 6) and done.out else {}

    def start_until_loaded(self, asked: list[str], draw: random.Random) -> None:
        """Repeat the start until all but one month are loaded; each start attaches to the running backfill."""
        loaded = "collected" if "together" in asked else "published"

        def is_there() -> bool:
            self.try_command(*asked, "--detach")
            time.sleep(draw.uniform(0, 3))
            states = self.states()
            return (
                states.pop(BAD, "") == "kept out" and len(states) == len(MONTHS) - 1 and {*states.values()} == {loaded}
            )

        wait_for(is_there, lambda: str(self.states()), 900)

    def repair_until_published(self, asked: list[str]) -> None:
        """Load the month that was kept out, in the backfill that waits for it or in a new backfill of this month."""
        repairs = ["retry", NAME] if "together" in asked else [asked[0], "--only", "failed", "--detach"]
        wait_for(lambda: self.try_command(*repairs) and self.states().get(BAD) != "kept out", limit=600)

        def has_ended() -> bool:
            shown = self.try_command("status", NAME)
            if "together" in asked:
                return bool((shown.get("together") or {}).get("ended"))
            return bool(shown) and shown["partitions"][BAD]["state"] in ("published", "skipped")

        wait_for(has_ended, lambda: str(self.states()), 600)

    def states(self) -> dict[str, str]:
        """Return the state of each month, or nothing if it cannot be read now."""
        shown = self.try_command("status", NAME)
        return {month: each["state"] for month, each in shown.get("partitions", {}).items()}


@pytest.mark.matrix
@pytest.mark.parametrize("publish", ["each", "together"])
def test_a_backfill_while_everything_is_killed(publish: str, unstable_stack: Stack, tmp_path: Path) -> None:
    """Nessie, Temporal and the worker are killed while a backfill runs, and is repaired: each row is on main once."""
    draw, killed = random.Random(SEED), KilledBackfill(unstable_stack, tmp_path)
    rides, lake = killed.rides, killed.lake
    try:
        before = lake.head()
        asked = [str(rides.file), "--partitions", f"{MONTHS[0]}..{MONTHS[-1]}", "--publish", publish]
        with repeatedly(lambda: killed.kill(draw), draw, 6, 14):
            killed.start_until_loaded(asked, random.Random(SEED))
        if publish == "together":
            assert (lake.rows("t.together"), lake.head()) == ([], before)
        rides.write(BAD)
        with repeatedly(lambda: killed.kill(draw), draw, 6, 14):
            killed.repair_until_published(asked)
        code, ended = rides.backfill("watch", NAME)
        assert code == 0 and {*ended["counts"]} <= {"published", "skipped"}, rides.reasons(ended)
        assert_each_once(lake.rows("t.together"), map(month_number, MONTHS))
        assert len(_merges(lake, before)) == (1 if publish == "together" else len(MONTHS))
        wait_for(lambda: all(each.startswith("quarantine/") for each in lake.branches()), lambda: str(lake.branches()))
        assert sum(killed.kills.values()) >= 3, killed.kills
    finally:
        rides.worker.stop()


def _merges(lake: LakeReader, since: str) -> list[str]:
    """Return the commits of main after a given commit."""
    commits, head = list[str](), lake.head()
    while head != since:
        commits.append(head)
        head = lake.commit(head)["parentCommitHashes"][0]
    return commits
