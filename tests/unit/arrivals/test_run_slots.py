"""The landing zone that may start the next run, decided without Temporal."""

import random

import pytest

from sluice.arrivals.run_slots import RunSlots
from sluice.contracts.arrival_runs import OpenGrant, RunSlotsState, WantedRun, ZoneRuns


def zone(
    name: str, *wanted: tuple[str, float], running: tuple[str, ...] = (), at: float = 1, answered: int = 0
) -> ZoneRuns:
    runs = [WantedRun(batch=batch, since=since, run=f"{name}-{batch}-1") for batch, since in wanted]
    return ZoneRuns(zone=name, at=at, answered=answered, running=list(running), wanted=runs)


def granted(slots: RunSlots, now: float = 10) -> list[str]:
    """Grant all possible runs; return the zones and batches."""
    given: list[str] = []
    while grant := slots.next(now):
        given.append(f"{grant.zone}/{grant.grant.batch}")
    return given


@pytest.fixture
def slots() -> RunSlots:
    return RunSlots(RunSlotsState())


def test_the_oldest_batches_are_first_over_all_zones(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 5), ("b", 1)), 3)
    slots.report(zone("y", ("c", 3), ("d", 4)), 3)
    assert granted(slots) == ["x/b", "y/c", "y/d"]
    assert slots.is_short and granted(slots) == []


def test_a_slot_is_of_the_run_until_its_zone_reports_that_it_ended(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 1), ("b", 2)), 1)
    first = slots.next(10)
    assert first and first.grant.batch == "a" and slots.next(10) is None
    slots.report(zone("x", ("b", 2), running=("x-a-1",), answered=first.grant.number), 1)
    assert granted(slots) == [] and slots.running == ["x-a-1"]
    slots.report(zone("x", ("b", 2), answered=first.grant.number), 1)
    assert granted(slots) == ["x/b"]


def test_a_report_from_before_the_grant_keeps_the_slot(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 1)), 1)
    first = slots.next(10)
    assert first
    slots.report(zone("x", ("a", 1), ("b", 2), at=2, answered=first.grant.number - 1), 1)
    assert granted(slots) == []
    slots.report(zone("x", ("b", 2), at=3, answered=first.grant.number), 1)  # the zone declined it
    assert granted(slots) == ["x/b"]


def test_an_older_report_that_comes_late_changes_nothing(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 1), at=5), 4)
    slots.report(zone("x", ("b", 1), at=4), 4)
    assert granted(slots) == ["x/a"]


def test_a_zone_that_ended_gives_back_what_it_has_not_started(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 1), ("b", 1), running=("x-0-1",)), 3)
    slots.report(zone("y", ("c", 9)), 3)
    assert granted(slots) == ["x/a", "x/b"]
    slots.zone_ended("x")
    assert granted(slots) == ["y/c"] and slots.running == ["x-0-1"]
    slots.check(["x-0-1"], 11)
    assert [each.zone for each in slots.state.zones] == ["y"]


def test_a_zone_that_does_not_answer_has_its_slot_as_long_as_the_run(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 1), ("b", 1)), 2)
    slots.report(zone("y", ("c", 2), ("d", 2)), 2)
    assert granted(slots, now=10) == ["x/a", "x/b"]
    assert slots.ids_to_check == ["x", "x-a-1", "x-b-1"]
    slots.check(["x-b-1"], 609)
    assert granted(slots, now=609) == []
    slots.check(["x-b-1"], 610)
    assert granted(slots, now=610) == ["y/c"] and slots.running == ["x-a-1"]


def test_a_zone_that_ended_before_its_report_leaves_the_slot_to_what_it_started(slots: RunSlots) -> None:
    slots.report(zone("x", ("a", 1), ("b", 1)), 2)
    slots.report(zone("y", ("c", 2), ("d", 2)), 2)
    assert granted(slots) == ["x/a", "x/b"]
    slots.check(["x", "x-b-1"], 11)
    assert granted(slots) == ["y/c"] and slots.running == ["x-a-1"]
    slots.check(["x-a-1"], 12)
    assert granted(slots) == ["y/d"]


def test_a_limit_that_is_lowered_ends_no_run(slots: RunSlots) -> None:
    slots.report(zone("x", ("c", 1), running=("x-a-1", "x-b-1")), 4)
    slots.report(zone("y"), 1)
    assert granted(slots) == [] and len(slots.running) == 2


def test_numbers_rise_also_after_all_was_lost() -> None:
    first, second = RunSlots(RunSlotsState()), RunSlots(RunSlotsState())
    numbers = []
    for slots, now in ((first, 10.0), (first, 10.0), (second, 10.01)):
        slots.report(zone("x", ("a", 1), ("b", 1), ("c", 1)), 9)
        grant = slots.next(now)
        assert grant
        numbers.append(grant.grant.number)
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("seed", range(20))
def test_two_hundred_zones_come_to_an_end_whatever_happens_to_them(seed: int) -> None:
    """Zones answer, decline, disappear and lose reports in any order: the limit holds, and every batch gets its run."""
    chance = random.Random(seed)
    slots, limit, now = RunSlots(RunSlotsState()), 8, 0.0
    zones = {f"z{n}": {f"b{n}-{k}": chance.uniform(0, 100) for k in range(3)} for n in range(200)}
    running: dict[str, set[str]] = {name: set() for name in zones}
    answered = dict.fromkeys(zones, 0)
    pending: list[OpenGrant] = []

    def report(name: str) -> None:
        wanted = [] if running[name] else list(zones[name].items())[:1]
        slots.report(zone(name, *wanted, running=tuple(running[name]), at=now, answered=answered[name]), limit)

    for name in zones:
        report(name)
    for _ in range(20_000):
        now += 1
        while grant := slots.next(now):
            pending.append(grant)
        active = [name for name in zones if running[name]]
        assert sum(map(len, running.values())) <= limit
        if chance.random() < 0.02:
            slots = RunSlots(RunSlotsState.model_validate_json(slots.state.model_dump_json()))  # it continues as new
        if pending and chance.random() < 0.7:
            each = pending.pop(chance.randrange(len(pending)))
            name, batch = each.zone, each.grant.batch
            answered[name] = max(answered[name], each.grant.number)
            if batch in zones[name] and not running[name] and chance.random() < 0.9:
                running[name].add(batch)
                del zones[name][batch]
            report(name)
        elif active:
            name = chance.choice(active)
            running[name].clear()
            report(name)
        elif not pending and not any(zones.values()):
            break
    assert not any(zones.values()) and slots.is_empty
    assert len(slots.state.model_dump_json()) < 500
