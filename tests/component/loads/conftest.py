"""Fixtures of the tests of loads: landing zones whose rows have an age."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.memory_system import MemorySystem
from tests.harness.merge_zone import MakeZone, MergeZone


@pytest.fixture
def make_zone(memory: MemorySystem, tmp_path: Path) -> Iterator[MakeZone]:
    zones: list[MergeZone] = []

    def make(name: str, **options: Any) -> MergeZone:
        zones.append(MergeZone(memory, tmp_path, name, options))
        return zones[-1]

    yield make
    for zone in zones:
        memory.run(zone.driver.remove())
