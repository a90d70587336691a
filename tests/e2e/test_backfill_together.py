"""A backfill that publishes its partitions by one merge: months of changing types, a bad month, a killed worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.backfilled_rides import BackfilledRides, month_number
from tests.harness.lake import LakeReader
from tests.harness.processes import wait_for
from tests.harness.rides import assert_each_once
from tests.harness.system import SystemHarness

MONTHS = {month: month_number(month) for month in ("2018-12", "2019-01", "2019-02", "2019-03")}
"""The months around the first one whose surcharges have a type, with their numbers."""
BAD = "2019-02"


@pytest.fixture
def rides(system: SystemHarness, backfill_queue: dict[str, str], tmp_path: Path) -> Iterator[BackfilledRides]:
    own = SystemHarness(tmp_path, {**system.environment, **backfill_queue})
    rides = BackfilledRides(own, tmp_path, MONTHS, BAD)
    try:
        yield rides
    finally:
        rides.worker.stop()


@pytest.mark.slow
def test_all_months_are_published_by_one_merge_or_none_is(rides: BackfilledRides, lake: LakeReader) -> None:
    before = lake.head()
    asked = (str(rides.file), "--partitions", f"{min(MONTHS)}..{max(MONTHS)}", "--publish", "together")
    assert rides.backfill(*asked, "--detach")[0] == 0
    wait_for(lambda: rides.collected() >= 1)
    rides.kill_worker()
    code, paused = rides.backfill(*asked)
    assert (code, paused["counts"]) == (3, {"collected": 3, "kept out": 1}), rides.reasons(paused)
    assert paused["partitions"][BAD]["state"] == "kept out" and "1 of 4 partitions" in paused["paused"]
    assert (lake.rows("t.together"), lake.head()) == ([], before)
    released = rides.system.command("quarantine", "release", paused["partitions"][BAD]["run_id"])
    assert released.code != 0 and "`backfill retry together`" in released.err, released.err

    rides.write(BAD)
    assert rides.backfill("retry", "together")[0] == 0
    code, published = rides.backfill("watch", "together")
    assert (code, published["counts"]) == (0, {"published": 4}), rides.reasons(published)
    assert_each_once(lake.rows("t.together"), MONTHS.values())
    after = lake.head()
    assert lake.commit(after)["parentCommitHashes"][0] == before
    assert lake.branches("backfill/") == []
    kept = lake.branches("quarantine/together/")
    of_bad_month = [any(row["ride_id"] > 10**6 for row in lake.rows("t.together", name)) for name in kept]
    assert kept and all(of_bad_month), "what all months were put together on is deleted"

    code, again = rides.backfill(*asked)
    assert (code, again["counts"], lake.head()) == (0, {"skipped": 4}, after)


@pytest.mark.slow
def test_a_month_whose_file_is_replaced_before_the_merge_is_not_published(
    rides: BackfilledRides, lake: LakeReader
) -> None:
    before = lake.head()
    file = rides.system.file(rides.file.read_text().replace("together", "outdated"))
    asked = (str(file), "--partitions", f"2019-01,{BAD}", "--publish", "together")
    code, paused = rides.backfill(*asked)
    assert (code, paused["counts"]) == (3, {"collected": 1, "kept out": 1}), rides.reasons(paused)
    rides.share_a_key("2019-01", MONTHS["2018-12"])
    rides.write(BAD)
    assert rides.backfill("retry", "outdated")[0] == 0
    code, refused = rides.backfill("watch", "outdated")
    reason = refused["together"]["ended"]["reason"]
    assert code != 0 and "partition 2019-01: " in reason and "after the backfill wrote its rows" in reason, refused
    assert (lake.rows("t.outdated"), lake.head(), lake.branches("backfill/")) == ([], before, [])
    code, published = rides.backfill(*asked)
    assert (code, published["counts"]) == (0, {"published": 2}), rides.reasons(published)
    assert len(lake.rows("t.outdated")) == 100


@pytest.mark.slow
def test_one_approval_is_asked_for_all_months(rides: BackfilledRides, lake: LakeReader) -> None:
    """A backfill that waits for an approval outlives its worker."""
    before = lake.head()
    asked = (str(rides.to_approve), "--partitions", "2018-12..2019-01", "--publish", "together")
    assert rides.backfill(*asked, "--detach")[0] == 0
    waiting = "all partitions: waiting for approval"
    wait_for(lambda: waiting in rides.system.command("backfill", "status", "joint").out, pause=1)
    rides.kill_worker()
    assert (lake.rows("t.joint"), lake.head()) == ([], before)
    refused = rides.system.command("backfill", *asked)
    assert refused.code == 2 and "are being published" in refused.err
    (waiting,) = rides.backfill("approve", "joint", "--dry-run")[1]["waiting"]
    assert (waiting["partition"], waiting["tables"], waiting["rows"]) == (
        "all partitions",
        "t.joint",
        "1 table: 100 rows added; new: t.joint",
    )
    seen = ("--hash", waiting["report"], "--reason", "both months were looked at")
    code, decided = rides.backfill("approve", "joint", *seen)
    assert (code, [each["partition"] for each in decided["decided"]]) == (0, ["all partitions"])
    assert rides.backfill("watch", "joint")[0] == 0
    assert_each_once(lake.rows("t.joint"), [11, 12])
    assert lake.branches("backfill/") == lake.branches("quarantine/joint/") == []


@pytest.mark.slow
def test_months_that_break_a_check_only_together_are_kept_out(rides: BackfilledRides, lake: LakeReader) -> None:
    """Each month has 50 rides; together they have more than the check permits."""
    before = lake.head()
    text = rides.file.read_text().replace("together", "crowded")
    file = rides.system.file(text.replace("- unique: ride_id", "- row_count: {max: 60}"))
    code, ended = rides.backfill(str(file), "--partitions", "2019-01,2019-03", "--publish", "together")
    assert (code, ended["counts"]) == (3, {"collected": 2}), rides.reasons(ended)
    assert "row_count" in ended["together"]["ended"]["reason"]
    assert (lake.rows("t.crowded"), lake.head(), lake.branches("backfill/")) == ([], before, [])
    (kept,) = lake.branches("quarantine/crowded/")
    assert kept == ended["together"]["quarantine"] and len(lake.rows("t.crowded", kept)) == 100
    shown = rides.system.command("quarantine", "show", kept)
    assert shown.code == 0 and kept in shown.out and "of a backfill, to be published together" in shown.out, shown.out
    code, again = rides.backfill("start", str(file), "--only", "failed", "--publish", "together", "--dry-run")
    assert [each["partition"] for each in again["partitions"]] == ["2019-01", "2019-03"]


@pytest.mark.slow
def test_a_month_that_shares_a_key_with_another_one_is_kept_out(rides: BackfilledRides, lake: LakeReader) -> None:
    """The month passes alone. Its audit also reads the months that were collected before it."""
    before = lake.head()
    rides.share_a_key("2019-03", MONTHS["2019-01"])
    file = rides.system.file(rides.file.read_text().replace("together", "one_key_twice"))
    asked = (str(file), "--partitions", "2019-01,2019-03", "--publish", "together")
    code, paused = rides.backfill(*asked)
    assert (code, paused["counts"]) == (3, {"collected": 1, "kept out": 1}), rides.reasons(paused)
    (reason,) = [each["reason"] for each in paused["partitions"].values() if each["state"] == "kept out"]
    assert "unique" in reason and (lake.rows("t.one_key_twice"), lake.head()) == ([], before)

    rides.terminate("one_key_twice")
    assert rides.backfill("watch", "one_key_twice")[0] == 6
    code, ended = rides.backfill(str(file), "--partitions", "2019-03", "--publish", "together")
    assert code == 2 and "left partitions on the branch" in ended["together"]["ended"]["reason"], ended
    code, cancelled = rides.backfill("cancel", "one_key_twice", "--yes")
    assert code == 0 and any("backfill/" in each for each in cancelled["left"]), cancelled
    assert (lake.branches("backfill/"), lake.head()) == ([], before)
    assert rides.system.command("backfill", "cancel", "one_key_twice", "--yes").code == 2
