"""Files land while workers and services are killed: each row is on main exactly once."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

import pytest

from devstack.stack import Stack
from tests.harness.kills import kill_service, repeatedly
from tests.harness.object_store import stack_with_store
from tests.harness.processes import wait_for
from tests.harness.ride_landing import TABLE, BucketLanding, RideLanding, UnreliableMessenger
from tests.harness.rides import ROWS, assert_each_once
from tests.harness.system import own_stack


@pytest.mark.warm
def test_a_worker_is_killed_while_files_arrive(
    stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The worker is killed while files arrive, settle and are loaded: each row is on main once."""
    queue = f"arrivals-{tmp_path.name}"
    landing = RideLanding(tmp_path, {**os.environ, **stack, "SLUICE_TASK_QUEUE": queue, "SPARK_ENGINE": "connect"})
    try:
        landing.deploy("settle: 2s, look: 2s, batch: {files: 3}")
        landing.write(0, spoilt=True)
        landing.write(0)  # overwritten before it has settled
        landing.write(13)
        wait_for(lambda: any(each["state"] == "running" for each in landing.shown()["batches"]))
        landing.kill_worker()
        for month in (1, 14, 15):
            landing.write(month)
        landing.write(13, name="again.parquet")
        landing.notify()
        landing.wait_until_loaded(6)
        assert_each_once(landing.lake.rows(TABLE), [0, 1, 13, 14, 15])
    finally:
        landing.close()


_SERVICES = ("nessie", "temporal", "store")
_SHORT = {"SLUICE_HEARTBEAT_TIMEOUT": "5", "SLUICE_ACTIVITY_TIMEOUT": "8", "SPARK_ENGINE": "connect"}


@contextmanager
def _folder(folder: Path) -> Iterator[tuple[RideLanding, Stack]]:
    with own_stack(folder) as stack:
        environment = {**os.environ, **stack.up(with_worker=False), "SLUICE_HOME": str(stack.home), **_SHORT}
        yield RideLanding(folder, environment), stack


@contextmanager
def _bucket(folder: Path) -> Iterator[tuple[RideLanding, Stack]]:
    messenger = UnreliableMessenger()
    try:
        with stack_with_store(folder, SLUICE_EVENTS_ADDRESS=messenger.url.removeprefix("http://")) as stack:
            yield BucketLanding(folder, stack, messenger, _SHORT), stack
        assert messenger.delivered > 10
    finally:
        messenger.close()


LANDINGS = {
    "folder": (_folder, ("nessie", "temporal", "spark", "worker", "worker")),
    "bucket": (_bucket, ("nessie", "temporal", "spark", "worker", "store")),
}


@pytest.mark.matrix
@pytest.mark.timeout(1800)  # the store may have to be built
@pytest.mark.parametrize("kind", LANDINGS)
def test_three_years_of_monthly_files_while_everything_is_killed(kind: str, tmp_path: Path) -> None:
    """Services, worker and Spark are killed while 36 monthly files arrive one by one, at once, and again."""
    make_landing, victims = LANDINGS[kind]
    draw, kills = random.Random(1), random.Random(2)
    with make_landing(tmp_path) as (landing, stack):
        try:
            landing.deploy("settle: 6s, look: 3s, at_once: 2, batch: {files: 5, wait: 10s}, overwritten: ignore")
            order = chain.from_iterable(kills.sample(victims, len(victims)) for _ in count())
            with repeatedly(lambda: _kill(landing, stack, next(order)), kills, 4, 12):
                _land_three_years(landing, draw)
                wait_for(lambda: landing.kills.keys() == set(victims), lambda: str(landing.kills))
            _assert_all_loaded(landing)
            wait_for(lambda: not landing.lake.branches(), lambda: str(landing.lake.branches()))
        finally:
            landing.close()


def _kill(landing: RideLanding, stack: Stack, victim: str) -> None:
    with landing.undisturbed:
        if victim in _SERVICES:
            landing.kills[victim] += 1
            kill_service(stack, victim)
        elif victim == "worker":
            landing.kill_worker()
        else:
            landing.kill_spark()


def _land_three_years(landing: RideLanding, draw: random.Random) -> None:
    for month in draw.sample(range(12), 12):  # one by one, some overwritten while they settle
        with landing.undisturbed:
            if draw.random() < 0.3:
                landing.write(month, spoilt=True)
                time.sleep(draw.uniform(0, 1))
            landing.write(month)
        time.sleep(draw.uniform(0, 6))
    for month in range(12, 36):  # at once
        landing.write(month)
    time.sleep(30)
    for month in range(36):  # all of them again, some under their old names
        landing.write(month, name=f"again-{month}.parquet" if month % 2 else "")
    time.sleep(20)


def _assert_all_loaded(landing: RideLanding) -> None:
    landing.notify()
    landing.wait_until_loaded(36 + 18)
    rows = landing.lake.rows(TABLE)
    assert_each_once(rows, range(36))
    assert len(rows) == 36 * ROWS
    for month in (3, 30):  # overwritten after they were loaded
        landing.write(month, spoilt=True)
    landing.notify()
    wait_for(lambda: sum(each["status"] == "ignored" for each in landing.shown()["files"]) == 2)
    assert_each_once(landing.lake.rows(TABLE), range(36))
