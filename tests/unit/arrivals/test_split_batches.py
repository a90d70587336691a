"""Batches of a landing zone are not split if the second half would replace rows of the first."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import Client

from activities.arrivals.split_batch import SplitBatchActivity
from cli.arrivals import actions
from cli.arrivals.actions import ArrivalAction, run_action
from cli.arrivals.commands import _print_zone
from cli.context import CommandContext, Interruption
from cli.layout import make_console
from lakehouse.arrivals.batch_store import BatchStore
from sluice.arrivals.splitting import split_refusal
from sluice.contracts.arrivals import ArrivedFile, Batch, BatchRef, ZoneStatus
from sluice.contracts.starting import PipelineText
from sluice.contracts.zone_requests import SplitBatchInput
from sluice.errors import InvalidPipeline
from sluice.settings import Settings

BATCH = Batch(ref=BatchRef(id="b1", location="", files=2, bytes=1), state="kept out", reason="a check failed")


def zone(write: str) -> ZoneStatus:
    """Return the status of a landing zone with one batch that is kept out."""
    text = f"name: p\nwrite: {{source: {{format: csv, loaded: skip}}, {write}}}\narrival: {{from: /in}}\n"
    text = f"{text}tables: {{t.x: {{partition_by: [day]}}}}\n"
    status = {"name": "p", "pipeline": PipelineText(name="p.yml", text=text, folder="/"), "batches": [BATCH]}
    more: dict[str, Any] = {"paused": "", "problem": "", "counts": {}, "latest_arrival": None, "next_look": ""}
    return ZoneStatus.model_validate({**status, **more})


MODES = [
    ("mode: append", False),
    ("mode: merge, keys: [id]", False),
    ("mode: overwrite", True),
    ("mode: overwrite_partitions", True),
    ("mode: unknown", False),  # the landing zone reports an invalid pipeline itself
]


@pytest.mark.parametrize(("write", "refused"), MODES)
def test_only_modes_that_replace_rows_refuse_a_split(write: str, refused: bool) -> None:
    refusal = split_refusal("p", zone(write).pipeline)
    assert bool(refusal) == refused
    if refused:
        assert f"`{write}`" in refusal and "`arrivals p --retry BATCH`" in refusal


@pytest.mark.parametrize(("write", "refused"), MODES)
def test_the_activity_refuses_what_any_other_client_sends(tmp_path: Path, write: str, refused: bool) -> None:
    batches = BatchStore((tmp_path / "lake").as_uri(), {})
    ref = batches.write("p", [ArrivedFile(path=f"/in/{each}", size=1, identity=each) for each in "ab"])
    given = SplitBatchInput(name="p", ref=ref, pipeline=zone(write).pipeline)
    if refused:
        with pytest.raises(InvalidPipeline, match="a batch of p cannot be split"):
            SplitBatchActivity(batches).split_batch(given)
    else:
        assert len(SplitBatchActivity(batches).split_batch(given).halves) == 2


@pytest.mark.parametrize(("write", "refused"), MODES)
def test_the_command_refuses_before_it_asks_or_changes_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], write: str, refused: bool
) -> None:
    split: list[str] = []

    async def read(*_: Any) -> ZoneStatus:
        return zone(write)

    async def confirm(*_: Any, **__: Any) -> None:
        split.append("asked")

    async def split_batch(*_: Any) -> list[Batch]:
        split.append("split")
        return [BATCH, BATCH]

    for name, fake in (("read_zone", read), ("_confirm", confirm), ("split_batch", split_batch)):
        monkeypatch.setattr(actions, name, fake)
    settings = Settings.of()
    context = CommandContext(cast(Client, None), settings, make_console(), False, Interruption())
    request = run_action(context, settings.installation, "p", ArrivalAction(split="b1"), yes=True)
    if refused:
        with pytest.raises(InvalidPipeline, match="a batch of p cannot be split"):
            asyncio.run(request)
    else:
        assert asyncio.run(request) == 0
    assert split == ([] if refused else ["asked", "split"])
    capsys.readouterr()
    _print_zone(context, zone(write))
    assert ("--split BATCH" in capsys.readouterr().out) != refused
