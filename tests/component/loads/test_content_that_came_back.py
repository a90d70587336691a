"""Content that comes back, 10, 20, 10, where its rows may have been replaced: in an overwrite, and by a program."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluice.pipeline.model import Pipeline
from tests.harness.lake_driver import Ending, LakeDriver
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import new_folder

PUBLISHED, REPEATED = "published", "already published"


@dataclass
class FolderDriver(LakeDriver):
    """A driver of a pipeline whose source is a folder with one file."""

    write: dict[str, Any] = field(default_factory=dict)
    largest: int = 1000

    def pipeline(self, *, strict: bool = True, approval: bool = False) -> Pipeline:
        """Return the pipeline, whose check refuses larger values than `largest`."""
        checks = [{"check": "accepted_range", "column": "v", "min": 0, "max": self.largest}] if strict else []
        source = {"path": str(self.folder / "in"), "format": "csv"}
        return Pipeline.model_validate(
            {
                "name": self.table.replace(".", "-"),
                "write": {"source": source, **self.write},
                "tables": {self.table: {"checks": checks}},
                "approval": {"required": 1} if approval else None,
            }
        )

    @property
    def file(self) -> Path:
        """The one file of the source."""
        return self.folder / "in" / "p.csv"

    def send(self, value: int) -> None:
        """Overwrite the file."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(f"id,v\n{value},{value}\n")


@pytest.fixture
def driver(memory: MemorySystem, tmp_path: Path, request: pytest.FixtureRequest) -> FolderDriver:
    memory.catalog.clear()
    name = request.node.name[:20]
    return FolderDriver(memory.client, memory.settings, memory.catalog, {}, f"t.{name}", new_folder(tmp_path, name))


def test_a_quarantined_overwrite_is_released(memory: MemorySystem, driver: FolderDriver) -> None:
    driver.write = {"mode": "overwrite"}
    for value in (10, 20):
        driver.send(value)
        assert memory.run(driver.run(driver.pipeline())).outcome == PUBLISHED
    driver.send(10)
    driver.largest = 5
    quarantined = memory.run(driver.run(driver.pipeline()))
    assert quarantined.result
    driver.largest = 1000
    released = memory.run(driver.release(quarantined.result.run_id, driver.pipeline()))
    assert (released.outcome, driver.rows()) == (PUBLISHED, {10: 1})


def test_a_program_is_run_again_only_by_a_decision(memory: MemorySystem, driver: FolderDriver) -> None:
    program = driver.folder / "program.py"
    program.touch()
    driver.write = {"job": str(program)}

    def replace_rows(_: Any) -> tuple[str, list[dict[str, int]]]:
        value = int(driver.file.read_text().split(",")[-1])
        return driver.table, [{"id": value, "v": value}]

    memory.engine.programs[program] = replace_rows

    def run(value: int) -> Ending:
        driver.send(value)
        return memory.run(driver.run(driver.pipeline()))

    assert [run(value).outcome for value in (10, 10, 20, 20)] == [PUBLISHED, REPEATED, PUBLISHED, REPEATED]
    refused = run(10)
    assert refused.outcome == "failed"
    assert "its program may have replaced these rows" in refused.why
    assert "--again" in refused.why
