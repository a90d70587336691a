"""The details of landing zones and backfills in the Temporal Web UI."""

from sluice.contracts.arrivals import Batch, BatchRef, ZoneStatus
from sluice.contracts.backfill import BackfillState, JointPublish, PartitionNote
from sluice.contracts.starting import EndedRun, PipelineText
from sluice.presentation.start_details import backfill_details, zone_details

ZONE = ZoneStatus(
    name="orders",
    pipeline=PipelineText(name="p.yml", text="", folder="/"),
    batches=[],
    paused="",
    problem="",
    counts={"loaded": 1200, "waiting": 1},
    latest_arrival=None,
    next_look="",
)


def test_an_open_zone_is_a_few_lines() -> None:
    assert zone_details(ZONE) == "**open**\n\nFiles: 1,200 loaded, 1 waiting\n\nBatches: none"


def test_a_zone_that_was_resumed_shows_why() -> None:
    resumed = ZONE.model_copy(update={"resumed": "it is repaired (ana)"})
    assert zone_details(resumed).startswith("**open**, resumed: it is repaired (ana)\n")


def test_a_zone_shows_what_needs_a_person() -> None:
    ref = BatchRef(id="ab12", location="", files=500, bytes=1)
    kept_out = [Batch(ref=ref, state="kept out", reason="not_null(id) | failed <b>")] * 12
    update = {
        "batches": kept_out,
        "paused": "we migrate",
        "problem": "the store is unavailable",
        "unfinished": "3 files",
    }
    text = zone_details(ZONE.model_copy(update=update))
    assert text.startswith("**paused**: we migrate\n")
    assert "Problem: the store is unavailable" in text and "After the load: 3 files" in text
    assert text.count("| `ab12` | 500 | not_null(id) \\| failed &lt;b> |") == 10 and "| 2 more | | |" in text
    assert "`arrivals orders` lists the files" in text


def test_a_backfill_shows_its_states_and_the_latest_failures() -> None:
    names = [f"2018-{month:02d}" for month in range(1, 13)]
    notes = {name: PartitionNote(outcome="failed", reason="away") for name in names[:11]}
    state = BackfillState(partitions=names, notes=notes, paused="3 failed")
    text = backfill_details(state, None)
    assert text.startswith("**paused**: 3 failed\n") and "12 partitions: 12 waiting" in text
    assert "| 2018-11 | failed | away |" in text and "2018-01" not in text
    assert backfill_details(BackfillState(partitions=names), None).startswith("**under way**\n")


def test_a_backfill_that_is_published_together_ends_with_its_merge() -> None:
    state = BackfillState(partitions=["a"], letters="p")
    joint = JointPublish(branch="backfill/p/1")
    assert backfill_details(state, joint).startswith("**under way**\n")
    ended = joint.model_copy(update={"ended": EndedRun(outcome="published", cause=None)})
    text = backfill_details(state, ended)
    assert text.startswith("**ended**\n") and "by one merge, from `backfill/p/1`" in text and "**published**" in text
