"""The fourth part of the demo: generated files arrive in a landing zone, and nobody starts a run."""

import csv
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from devstack.demo_commands import Commands, console, expect, say
from devstack.object_store import remove_keys, upload
from devstack.stack import ROOT

ORDERS = "demo.orders"
_PIPELINE = "demo-orders"
_SET = "sluice-demo"
_LANDING = "data/landing/demo-orders"
"""Path of the landing zone in the pipeline file."""
_PREFIX = "landing/demo-orders"
"""Prefix of the landing zone in the source bucket."""
_OWN_NAMES = f"{_PIPELINE}-seed"
"""Prefix of the names that `generate` gives to files of this pipeline. The demo removes only such files."""
_FAULT = "not_null:order_id=0.02"
_ROWS = 400
_LIMIT = 240.0
ReadIds = Callable[[], list[int]]


class FilesThatArrive:
    """The part of the demo in which files arrive: good files, and one with a fault."""

    def __init__(self, commands: Commands, folder: Path, home: Path, read_ids: ReadIds, *, s3: bool) -> None:
        """Prepare this part of the demo.

        Args:
            folder: the folder of the pipeline files, below the root of the repository.
            read_ids: a function that returns the numbers of all orders on main, without a run of Sluice.
        """
        self._commands, self._read_ids, self._s3 = commands, read_ids, s3
        self._folder = folder / "arrivals"
        self._files = Path(os.path.relpath(home / "demo" / "files", ROOT)) if s3 else Path(_LANDING)
        """The folder to which `generate` writes: without a store, the landing zone itself."""
        self._nothing = home / "demo" / "nothing"
        self._seed = int(time.time()) * 10
        """A seed that differs in each demo, since Sluice does not load files of an earlier demo again."""

    def run(self) -> None:
        """Deploy the landing zone, let files arrive, compare main with them, and remove the landing zone."""
        self._clear()
        try:
            good = [self._generate(number) for number in (0, 1)]
            self._land(good)
            self._commands.run("deploy", str(self._folder), "--set", _SET, "--yes")
            self._wait("The files settle, and a run is started for them", _is_batch)
            say("\nA file with a fault arrives: some orders have no number.\n")
            faulty = self._generate(2, "--fault", _FAULT)
            self._land([faulty])
            self._wait("The landing zone loads what arrived", _is_decided)
            say("\nNobody started a run. What became of the files:\n")
            self._commands.run("arrivals", _PIPELINE)
            self._compare(good, faulty)
        finally:
            self._undeploy()

    def _clear(self) -> None:
        """Remove the landing zone and the generated files of an earlier demo that was killed."""
        self._undeploy()
        if self._s3:
            remove_keys(self._commands.environment, _PREFIX, _OWN_NAMES)
        for file in self._present():
            if file.name.startswith(_OWN_NAMES):
                file.unlink()
        others = sorted(file.name for file in self._present())
        expect(not others, f"{self._files} has files that the demo did not write: {', '.join(others[:5])}. Move them.")

    def _undeploy(self) -> None:
        self._nothing.mkdir(parents=True, exist_ok=True)
        removed = self._commands.read("deploy", str(self._nothing), "--set", _SET, "--yes")
        for change in removed.get("changes", []):
            say(f"Removed the {change['kind']} of {change['pipeline']}, which the demo deployed.")

    def _generate(self, number: int, *more: str) -> Path:
        file, before = str(self._folder / "orders.yml"), self._present()
        rows = ("-n", str(_ROWS), "--seed", str(self._seed + number))
        code = self._commands.run("generate", file, *rows, *more, "--to", str(self._files))
        expect(code == 0, f"generate ended with exit code {code}")
        (made,) = self._present() - before
        return made

    def _present(self) -> set[Path]:
        return set((ROOT / self._files).glob("*.csv"))

    def _land(self, files: Sequence[Path]) -> None:
        """Upload files to the landing zone in the bucket. Without a store they are already in the landing zone."""
        if self._s3:
            bucket = self._commands.environment["SOURCE_BUCKET"]
            say(f"Uploading {len(files)} of them to s3://{bucket}/{_PREFIX}/")
            upload(self._commands.environment, [(file, f"{_PREFIX}/{file.name}") for file in files])

    def _wait(self, what: str, condition: Callable[[dict[str, Any]], bool]) -> None:
        with console.status(what):
            self._commands.wait_for(condition, _LIMIT, "arrivals", _PIPELINE)

    def _compare(self, good: Sequence[Path], faulty: Path) -> None:
        """Check that main has each order of the good files once, and no order of the faulty file."""
        wanted = sorted(number for file in good for number in _numbers(file))
        refused = _numbers(faulty)
        arrived = {*wanted, *refused}
        loaded = sorted(number for number in self._read_ids() if number in arrived)
        expect(len(wanted) == len(good) * _ROWS, f"the good files have {len(wanted)} numbers of orders")
        expect(loaded == wanted, f"main has {len(loaded)} orders of these files instead of the {len(wanted)} good ones")
        say(
            f"main has the {len(wanted):,} orders of the {len(good)} good files, each once, and none of the {_ROWS} of "
            "the faulty one."
        )


def move_landing_zone(text: str, bucket: str) -> str:
    """Return the text of a pipeline file whose landing zone is in a bucket."""
    return text.replace(f"from: {_LANDING}/", f"from: s3://{bucket}/{_PREFIX}/")


def _is_batch(zone: dict[str, Any]) -> bool:
    return bool(zone["batches"]) or _counts(zone) != (0, 0)


def _is_decided(zone: dict[str, Any]) -> bool:
    return _counts(zone) == (2, 1) and [batch["state"] for batch in zone["batches"]] == ["kept out"]


def _counts(zone: dict[str, Any]) -> tuple[int, int]:
    """Return the number of files that are loaded, and the number of files in batches."""
    states = [file["status"] for file in zone["files"]]
    return states.count("loaded"), states.count("in a batch")


def _numbers(file: Path) -> list[int]:
    """Return the numbers of the orders in a file, without the orders whose number is missing."""
    with file.open(newline="") as opened:
        return [int(row["order_id"]) for row in csv.DictReader(opened) if row["order_id"]]
