"""Measure how the selection of a few files slows down as main records more loaded files.

    python -m bench.loaded_files [--rounds 21]

Uses a catalog in memory and manifests in a folder, without server and Spark. A selection is everything between the
list of files and the decision: update the index, query it, and write the manifest. Ratios count, not seconds.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.manifests import InputManifests
from sluice.contracts.run_request import InputFile
from sluice.input.held_files import WantedFile
from sluice.input.manifest import InputManifest, ManifestFile, ManifestHeader
from sluice.input.selection import select_files
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.commit_properties import PIPELINE, RUN_ID, WORKFLOW_ID
from tests.harness.memory_catalog import MemoryCatalog

_TABLE = "b.files"
_REMEMBERED = (0, 1_000, 10_000, 100_000)
_AT_ONCE = 1_000
"""Number of files loaded by each earlier run."""
_SELECTED = 10


class Lake:
    """A main with loaded files, and the inputs of an index of it."""

    def __init__(self, folder: Path) -> None:
        self.catalog = MemoryCatalog()
        self.catalog.initialize_main()
        self.manifests = InputManifests((folder / "lake").as_uri(), {})
        self.home = folder / "home"
        self.remembered = 0

    def remember(self, until: int) -> None:
        """Publish files by runs of a thousand, until main has this number."""
        while self.remembered < until:
            run = f"r{self.remembered}"
            files = [file(number) for number in range(self.remembered, self.remembered + _AT_ONCE)]
            ref = self.manifests.write(manifest(run, [ManifestFile(**each.model_dump()) for each in files]))
            described = {RUN_ID: run, WORKFLOW_ID: f"w-{run}", PIPELINE: "p", **input_properties(run, [_TABLE], ref)}
            self.catalog.commit_tables("main", self.catalog.head("main"), "publish", properties=described)
            self.remembered += _AT_ONCE

    def select(self, loaded_files: LoadedFiles, number: int) -> None:
        """Select new files, as a run does."""
        files = [file(10**9 + number * _SELECTED + each) for each in range(_SELECTED)]
        held = loaded_files.find([_TABLE], [WantedFile(each.path, each.identity) for each in files])
        selected = select_files(files, {each.wanted.path: each.load for each in held}, "skip")
        assert sum(each.left_out is None for each in selected) == _SELECTED
        self.manifests.write(manifest(f"s{number}", selected))


def file(number: int) -> InputFile:
    """Return a file with a unique identity."""
    return InputFile(path=f"/landing/day/part-{number}.csv", size=1000, identity=f"sha256:{number:064x}")


def manifest(run: str, files: list[ManifestFile], table: str = _TABLE) -> InputManifest:
    """Return the manifest of a run that loads files into a table."""
    header = ManifestHeader(
        run_id=run,
        workflow_id=f"w-{run}",
        pipeline="p",
        attempt=1,
        base="",
        tables=[table],
        policy="skip",
        again=False,
        input_digest=run,
    )
    return InputManifest(header=header, files=files)


def main() -> None:
    """Measure, and print medians and their ratios to a main without loaded files."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=21)
    rounds = asked.parse_args().rounds
    least = 0.0
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        lake.manifests.write(manifest("first", []))  # triggers the imports of the first write
        for remembered in _REMEMBERED:
            lake.remember(remembered)
            loaded_files = LoadedFiles(lake.catalog, lake.manifests, lake.home / str(remembered))
            started = time.perf_counter()
            lake.select(loaded_files, 0)  # builds the index from main's history
            built = time.perf_counter() - started
            seconds = []
            for number in range(1, rounds + 1):
                started = time.perf_counter()
                lake.select(loaded_files, number)
                seconds.append(time.perf_counter() - started)
            least = least or median(seconds)
            print(
                f"{remembered:>7} files remembered: {_SELECTED} selected in {median(seconds) * 1000:7.2f} ms, "
                f"{median(seconds) / least:5.2f} times; the index is built in {built:6.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
