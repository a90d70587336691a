"""The reports to people about the files in a landing zone, and about the zone itself."""

from typing import Any

import pytest

from sluice.contracts.arrivals import (
    ArrivalEntry,
    Batch,
    BatchRef,
    BatchState,
    FileStatus,
    ListArrivalsResult,
    ZoneNotice,
    ZoneStatus,
    other_content_in,
)
from sluice.contracts.starting import PipelineText
from sluice.notifications.message import message_of_landing_zone
from sluice.notifications.slack import slack_text
from sluice.presentation.arrivals import describe_file, describe_files, describe_listing, describe_no_match

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
    ("counts", "in_batches", "text"),
    [
        ({}, {}, "none"),
        ({"loaded": 1_200, "in a batch": 2}, {"kept": 2}, "2 kept out, 1,200 loaded"),
        ({"waiting": 1, "in a batch": 4}, {"next": 2, "now": 2}, "2 running, 3 waiting"),
        ({"in a batch": 1}, {other_content_in("now"): 1}, "1 waiting"),  # it was overwritten during the run
        ({"in a batch": 3}, {"now": 3}, "3 running"),  # one is a copy
        ({"in a batch": 1}, {"new": 1}, "1 waiting"),  # the batch began after its zone was asked
        ({"in a batch": 2}, {}, "2 in a batch"),  # a worker of an earlier release counted
    ],
)
def test_files_are_counted_by_the_state_that_the_list_shows(
    counts: dict[str, int], in_batches: dict[str, int], text: str
) -> None:
    states: dict[str, BatchState] = {"kept": "kept out", "next": "waiting", "now": "running"}
    batches = [batch(ref=BatchRef(id=id, location="", files=2, bytes=1), state=state) for id, state in states.items()]
    listed = ListArrivalsResult(files=[], counts=counts, in_batches=in_batches)
    assert describe_files(listed, batches) == text
    shown = zone(*batches)
    rows = {detail: describe_file(entry("in a batch", detail), shown, {})[0] for detail in in_batches}
    assert all(f"{number} {rows[detail]}" in text for detail, number in in_batches.items() if len(in_batches) == 1)


@pytest.mark.parametrize(
    ("counts", "file", "status", "texts"),
    [
        ({"loaded": 3, "in a batch": 1}, "", "moved", ("No file has the status 'moved'.", "1 in a batch, 3 loaded")),
        (
            {"in a batch": 1},
            "",
            "waiting",
            ("No file has the status 'waiting'. The status of files in a batch is 'in a batch'.", "1 in a batch"),
        ),
        ({"loaded": 3}, "x", "refused", ("No file with 'x' in its path has the status 'refused'.", "3 loaded")),
        ({"in a batch": 1}, "x", None, ("No file with 'x' in its path is in the landing zone. Names", "1 running")),
        ({}, "", None, ("No file is in the landing zone.", "No files.")),
    ],
)
def test_a_list_without_files_names_the_statuses_that_there_are(
    counts: dict[str, int], file: str, status: str | None, texts: tuple[str, str]
) -> None:
    in_batches = {"ab": 1} if "in a batch" in counts else {}
    listed = ListArrivalsResult(files=[], counts=counts, in_batches=in_batches)
    assert describe_no_match(file, status).startswith(texts[0])
    assert describe_listing(listed, [batch(state="running")], status).endswith(texts[1])


def test_a_notice_is_one_line_of_plain_text() -> None:
    line = slack_text(message_of_landing_zone(ZoneNotice(name="p", text="<!channel> a & b\nc")))
    assert line == ":warning: arrivals of p: &lt;!channel&gt; a &amp; b c"
