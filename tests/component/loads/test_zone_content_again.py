"""Content that comes again in a landing zone in `mode: merge`: it counts as loaded only while main still has it."""

import pytest

from tests.harness.merge_zone import MakeZone
from tests.harness.unreadable_files import make_unreadable

pytestmark = pytest.mark.usefixtures("immediate_listings")


@pytest.mark.parametrize("latest", [20, 30])
def test_a_file_sent_again_is_loaded_only_if_the_latest_one_was_sent_again_unchanged(
    make_zone: MakeZone, latest: int
) -> None:
    zone = make_zone(f"latest{latest}", overwritten="ignore", batch={"files": 1})
    for name, value in (("mon.csv", 10), ("tue.csv", 20)):
        zone.send(name, value)
        zone.settle()
    zone.send("mon.csv", 10)
    zone.send("tue.csv", latest)
    zone.settle()
    counts = zone.memory.run(zone.driver.status()).counts
    if latest == 20:
        assert counts == {"loaded": 2}
        return
    assert counts == {"refused": 1, "ignored": 1}
    assert zone.load("mon.csv", over_younger=True)
    assert zone.value() == 10


def test_content_that_main_no_longer_has_is_loaded_by_name(make_zone: MakeZone) -> None:
    zone = make_zone("named", overwritten="ignore")
    zone.send("p.csv", 10)
    zone.settle()
    zone.send("p.csv", 11)
    zone.settle()
    assert zone.load("p.csv")
    assert zone.value() == 11
    zone.send("p.csv", 10)
    zone.settle()
    assert zone.memory.run(zone.driver.status()).counts == {"ignored": 1}
    assert zone.load("p.csv", over_younger=True)
    assert zone.value() == 10
    assert zone.batches() == []


def test_a_retry_loads_named_files_whose_run_was_refused(make_zone: MakeZone, monkeypatch: pytest.MonkeyPatch) -> None:
    unreadable, zone = make_unreadable(monkeypatch), make_zone("refusednamed", overwritten="ignore")
    zone.send("p.csv", 10)
    zone.settle()
    zone.send("p.csv", 11)
    zone.settle()
    unreadable.add("run p.csv")
    assert zone.load("p.csv")
    (refused,) = zone.batches()
    assert (refused.state, refused.outcome) == ("kept out", "refused")
    unreadable.clear()
    zone.decide("retry", refused)
    assert zone.value() == 11
    assert zone.batches() == []
