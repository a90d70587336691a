"""Files that arrive in a landing zone: each is published once, or kept out, and no person starts a run."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import wait_for
from tests.harness.system import SystemHarness

NAME = "arriving"


class Zone:
    """A landing zone as its command prints it."""

    def __init__(self, system: SystemHarness, name: str = NAME) -> None:
        self.system, self.name = system, name

    def shown(self, *options: str) -> dict[str, Any]:
        output = self.system.command("arrivals", self.name, "--json", *options)
        assert output.code == 0, output.err
        return dict(output.json)

    def until(self, file: str, status: str, batch: str = "") -> dict[str, Any]:
        """Wait until a file, and the batch that it is in, have a state; return the command's output then."""
        seen: dict[str, Any] = {}

        def holds() -> bool:
            seen.update(self.shown("--file", file))
            states = {each["status"] for each in seen["files"]}
            if status == "in a batch" and not {each["detail"] for each in seen["files"]} <= seen["runs"].keys():
                return False  # the batch began after the batches were read
            return states == {status} and (not batch or [each["state"] for each in seen["batches"]] == [batch])

        wait_for(holds, lambda: str(seen))
        return seen


def _ids(lake: LakeReader) -> list[int]:
    return sorted(row["id"] for row in lake.rows(f"t.{NAME}"))


@pytest.mark.slow
def test_files_are_published_once_or_kept_out(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    landing, folder = tmp_path / "landing", tmp_path / "arriving"
    landing.mkdir()
    folder.mkdir()
    text = pipeline(NAME, landing / "*.csv", "[not_null: [id]]", f"arrival: {{from: {landing}, settle: 1s, look: 3s}}")
    (folder / "arriving.yml").write_text(text)
    csv_file(landing / "jan.csv", [{"id": 1, "kind": "x"}, {"id": 2, "kind": "x"}])
    deployed = system.command("deploy", str(folder), "--yes", "--json")
    assert [(each["action"], each["kind"]) for each in deployed.json["changes"]] == [("create", "landing zone")]
    zone = Zone(system)
    zone.until("jan.csv", "loaded")
    assert _ids(lake) == [1, 2]
    again = system.command("deploy", str(folder))
    assert (again.code, "There is nothing to do." in again.out) == (0, True), again.err

    csv_file(landing / "bad.csv", [{"id": 3, "kind": "x"}, {"id": None, "kind": "x"}])
    kept = zone.until("bad.csv", "in a batch", "kept out")
    (batch,) = kept["batches"]
    assert batch["outcome"] == "quarantined" and "not_null" in batch["reason"]
    csv_file(landing / "jan-again.csv", [{"id": 1, "kind": "x"}, {"id": 2, "kind": "x"}])
    csv_file(landing / "feb.csv", [{"id": 4, "kind": "x"}])
    zone.until("feb.csv", "loaded")
    zone.until("jan-again.csv", "loaded")
    assert _ids(lake) == [1, 2, 4]
    shown = system.command("arrivals", NAME, "--file", "bad.csv")
    assert "kept out" in shown.out and batch["ref"]["id"] in shown.out, shown.out

    refused = system.command("arrivals", NAME, "--retry", "nothing")
    assert (refused.code, "there is no batch 'nothing'" in refused.err) == (2, True), refused.err
    aside = system.command("arrivals", NAME, "--set-aside", batch["ref"]["id"], "--json", "--yes")
    assert aside.json["state"] == "set aside"
    assert system.command("pause", NAME, "--note", "we look at it").code == 0
    csv_file(landing / "mar.csv", [{"id": 5, "kind": "x"}])
    assert "we look at it" in zone.until("mar.csv", "in a batch")["paused"]
    wait_for(lambda: {each["state"] for each in zone.shown()["batches"]} == {"set aside", "waiting"})
    assert system.command("resume", NAME, "--note", "it is fine").code == 0
    zone.until("mar.csv", "loaded")
    assert _ids(lake) == [1, 2, 4, 5]
    assert "resumed: it is fine (" in system.command("arrivals", NAME).out
    by_hand = system.command("run", str(folder / "arriving.yml"))
    assert (by_hand.code, "is deployed, and loads its files" in by_hand.err) == (2, True), by_hand
    _load_what_was_rolled_back(system, zone, lake, landing / "mar.csv")

    (folder / "arriving.yml").write_text(f"{text}\napproval: {{required: 1, timeout: 1h}}\n")
    assert system.command("deploy", str(folder), "--yes").code == 0
    _overwrite_while_a_person_decides(system, zone, landing / "apr.csv")
    assert _ids(lake) == [1, 2, 4, 5, 6], "the content that was approved, and no other"

    (folder / "arriving.yml").unlink()
    removed = system.command("deploy", str(folder), "--yes", "--json")
    forgotten = "a zone that is deployed again loads the 1 file set aside in this one"
    assert [(each["action"], each["hint"]) for each in removed.json["changes"]] == [("remove", forgotten)], removed.err
    unknown = system.command("arrivals", NAME)
    assert (unknown.code, "has no landing zone" in unknown.err) == (2, True), unknown.err


def _load_what_was_rolled_back(system: SystemHarness, zone: Zone, lake: LakeReader, file: Path) -> None:
    before = _ids(lake)
    run = zone.shown("--file", file.name)["files"][0]["detail"]
    rolled_back = system.command("rollback", run, "--yes")
    assert rolled_back.code == 0, rolled_back.err
    (shown,) = zone.shown("--file", file.name)["files"]
    assert "rolled back" in shown["detail"] and len(_ids(lake)) == len(before) - 1, shown
    loaded = system.command("arrivals", NAME, "--load", str(file), "--yes")
    assert loaded.code == 0, loaded.err
    wait_for(lambda: _ids(lake) == before, lambda: str(zone.shown("--file", file.name)))


def _overwrite_while_a_person_decides(system: SystemHarness, zone: Zone, file: Path) -> None:
    csv_file(file, [{"id": 6, "kind": "x"}])
    shown = zone.until(file.name, "in a batch")
    run = shown["runs"][shown["files"][0]["detail"]]
    waiting = system.wait_for_stage(run, "waiting for approval")
    csv_file(file, [{"id": 6, "kind": "x"}, {"id": 7, "kind": "x"}])
    other = "has this path with other content"
    wait_for(lambda: other in zone.shown("--file", file.name)["files"][0]["detail"])
    named = f"{waiting['audited_hash'][:12]}:{waiting['audit_digest'][:12]}"
    approved = system.command("approve", run, "--by", "ana", "--hash", named)
    assert approved.code == 0, approved.err
    ignored = zone.until(file.name, "ignored")
    assert "overwritten" in ignored["files"][0]["detail"]


@pytest.mark.slow
def test_files_that_main_holds_are_moved(system: SystemHarness, tmp_path: Path) -> None:
    landing, loaded, folder = tmp_path / "landing", tmp_path / "loaded", tmp_path / "moving"
    landing.mkdir()
    folder.mkdir()
    (folder / "moving.yml").write_text(
        pipeline(
            *("moving", landing / "*.csv", "[not_null: [id]]"),
            f"arrival: {{from: {landing}, settle: 1s, look: 3s, after: move, move_to: {landing}}}",
        )
    )
    refused = system.command("deploy", str(folder), "--yes")
    assert (refused.code, "would be in the landing zone" in refused.err) == (2, True), refused.err
    text = (folder / "moving.yml").read_text()
    (folder / "moving.yml").write_text(text.replace(f"move_to: {landing}", f"move_to: {loaded}"))
    csv_file(landing / "good.csv", [{"id": 1, "kind": "x"}])
    deployed = system.command("deploy", str(folder), "--yes")
    assert deployed.code == 0, deployed.err
    zone = Zone(system, "moving")
    (moved,) = zone.until("good.csv", "moved")["files"]
    assert moved["detail"].startswith(f"to {loaded}/good.csv; ")
    csv_file(landing / "bad.csv", [{"id": None, "kind": "x"}])
    zone.until("bad.csv", "in a batch", "kept out")
    csv_file(landing / "good.csv", [{"id": 1, "kind": "x"}])
    wait_for(lambda: [path.name for path in landing.iterdir()] == ["bad.csv"])
    assert [path.name for path in loaded.iterdir()] == ["good.csv"]
    (folder / "moving.yml").unlink()
    assert system.command("deploy", str(folder), "--yes").code == 0
