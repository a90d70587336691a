"""The reports to people about the files in a landing zone, and about the zone itself."""

from typing import Any

import pytest

from sluice.contracts.arrivals import ArrivalEntry, Batch, BatchRef, FileStatus, ZoneNotice, ZoneStatus
from sluice.contracts.starting import PipelineText
from sluice.notifications.message import message_of_landing_zone
from sluice.notifications.slack import slack_text
from sluice.presentation.arrivals import describe_file, describe_files

TEXT = PipelineText(name="p.yml", text="name: p", folder="/")


def zone(*batches: Batch, paused: str = "") -> ZoneStatus:
    return ZoneStatus(
        name="p",
        pipeline=TEXT,
        batches=[*batches],
        paused=paused,
        problem="",
        counts={},
        latest_arrival=None,
        next_look="",
    )


def batch(**more: Any) -> Batch:
    return Batch.model_validate({"ref": BatchRef(id="ab", location="l", files=2, bytes=1), **more})


def entry(status: FileStatus, detail: str, after: str = "") -> ArrivalEntry:
    return ArrivalEntry(path="/in/a.csv", size=1, arrived_at=0, status=status, detail=detail, after=after)


@pytest.mark.parametrize(
    ("file", "of", "state", "why"),
    [
        (entry("waiting", "it settles for 5 s more"), zone(), "waiting", "it settles for 5 s more"),
        (entry("loaded", "p-1"), zone(), "published", "run p-1"),
        (entry("loaded", "p-1", "tagged"), zone(), "published", "run p-1; tagged"),
        (
            entry("loaded", "p-1 (rolled back)"),
            zone(),
            "rolled back",
            "run p-1; only `arrivals p --load FILE` loads it again",
        ),
        (
            entry("loaded", "p-1").model_copy(update={"copy_of": "/in/b.csv"}),
            zone(),
            "copy",
            "of /in/b.csv, which run p-1 loaded",
        ),
        (entry("in a batch", "ab"), zone(batch(state="running")), "running", "batch ab: run p-9"),
        (entry("in a batch", "ab"), zone(batch()), "waiting", "batch ab: older batches are loaded first"),
        (entry("in a batch", "ab"), zone(batch(), paused="x"), "waiting", "batch ab: the landing zone is paused"),
        (
            entry("in a batch", "ab"),
            zone(batch(state="kept out", reason="a check failed")),
            "kept out",
            "batch ab: a check failed",
        ),
        (entry("in a batch", "ab"), zone(batch(state="set aside")), "set aside", "batch ab"),
        (entry("in a batch", "zz"), zone(), "waiting", "batch zz has just begun, or ended"),
        (entry("refused", "it is truncated"), zone(), "refused", "it is truncated"),
    ],
)
def test_each_file_has_a_state_and_a_reason(file: ArrivalEntry, of: ZoneStatus, state: str, why: str) -> None:
    assert describe_file(file, of, {"ab": "p-9"}) == (state, why)


@pytest.mark.parametrize(
    ("counts", "batches", "text"),
    [
        ({}, [], "none"),
        ({"loaded": 1_200, "in a batch": 2}, [batch(state="kept out")], "2 kept out, 1,200 loaded"),
        ({"waiting": 1, "in a batch": 4}, [batch(), batch(state="running")], "2 running, 3 waiting"),
        ({"in a batch": 3}, [batch(state="running")], "3 in a batch"),  # a batch began after its zone was asked
    ],
)
def test_files_are_counted_by_the_state_that_the_list_shows(
    counts: dict[str, int], batches: list[Batch], text: str
) -> None:
    assert describe_files(counts, batches) == text


def test_a_notice_is_one_line_of_plain_text() -> None:
    line = slack_text(message_of_landing_zone(ZoneNotice(name="p", text="<!channel> a & b\nc")))
    assert line == ":warning: arrivals of p: &lt;!channel&gt; a &amp; b c"
