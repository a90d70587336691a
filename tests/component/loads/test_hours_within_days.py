"""A day of a file that was loaded, and then an hour of that day: rows are not loaded twice without a word."""

from datetime import datetime, timezone
from pathlib import Path

import pytest

from sluice.pipeline.placeholders import partition_values, time_values
from tests.component.loads.test_partitioned_loads import Rides
from tests.harness.memory_system import MemorySystem

AT_FIVE = time_values(datetime(2026, 3, 2, 5, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("day", "hour"),
    [
        ((AT_FIVE, "{{ scheduled_for.date }}"), (AT_FIVE, "{{ scheduled_for.hour }}")),
        ((AT_FIVE, "{{ scheduled_for.hour }}"), (AT_FIVE, "{{ scheduled_for.date }}")),
        ((partition_values("2026-03-02"), "{{ partition }}"), (partition_values("2026-03-02T05"), "{{ partition }}")),
    ],
    ids=["day, hour", "hour, day", "partitions"],
)
def test_an_hour_of_a_loaded_day_is_refused(
    memory: MemorySystem, tmp_path: Path, day: tuple[dict[str, str], str], hour: tuple[dict[str, str], str]
) -> None:
    rides = Rides(memory, tmp_path)

    def write(used: str) -> str:
        transform = f"SELECT * FROM source WHERE v = 1 AND '{used}' != ''"
        return f'write: {{source: {{path: rides.csv}}, transform: "{transform}"}}\n'

    assert rides.start(write(day[1]), day[0]).outcome == "published"
    again = rides.start(write(hour[1]), hour[0])
    assert rides.ids == [11, 12, 13], again
    assert again.outcome == "failed" and "rows would be loaded twice" in again.reason
