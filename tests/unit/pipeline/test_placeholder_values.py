"""Placeholder values that a person gives one run: the same that a schedule or a backfill would give."""

from pathlib import Path

import pytest

from runtime.pipeline.placeholder_values import placeholder_values
from sluice.errors import InvalidPipeline

FILE = 'name: p\nwrite: {source: {path: "{{ scheduled_for.date }}/{{ partition }}.csv"}}\ntables: {t.x: {}}\n'


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.yml"
    path.write_text(FILE)
    return path


@pytest.fixture
def scheduled(tmp_path: Path) -> Path:
    path = tmp_path / "scheduled.yml"
    path.write_text(f"{FILE}schedule: {{cron: 0 5 * * *, zone: Asia/Tokyo}}\n")
    return path


def time_of(file: Path, given: str) -> str:
    return placeholder_values(file, given, "2018-01")["scheduled_for"]


def test_a_time_is_in_the_zone_of_the_schedule_or_as_it_is_written(plain: Path, scheduled: Path) -> None:
    assert time_of(plain, "2026-03-01T05:00+01:00") == "2026-03-01T05:00:00+01:00"
    assert time_of(plain, "2026-03-01T05:00Z") == "2026-03-01T05:00:00+00:00"
    assert time_of(scheduled, "2026-03-01T20:00Z") == "2026-03-02T05:00:00+09:00"
    assert time_of(scheduled, "2026-03-02T05:00") == "2026-03-02T05:00:00+09:00"


def test_a_time_in_the_hour_that_a_zone_skips_is_the_same_moment_as_written_with_its_offset(tmp_path: Path) -> None:
    """In an earlier version, it had the parts and the offset of a time that does not exist."""
    file = tmp_path / "berlin.yml"
    file.write_text(f"{FILE}schedule: {{cron: 0 5 * * *, zone: Europe/Berlin}}\n")
    moved = {time_of(file, given) for given in ("2026-03-29T02:30", "2026-03-29T02:30+01:00", "2026-03-29T03:30")}
    assert moved == {"2026-03-29T03:30:00+02:00"}


def test_a_partition_has_its_parts(plain: Path) -> None:
    values = placeholder_values(plain, "", "2018-01")
    assert (values["partition"], values["partition.month"], values["partition.end"]) == ("2018-01", "01", "2018-02-01")


def test_without_options_there_are_no_values(plain: Path) -> None:
    assert placeholder_values(plain, "", "") == {}
    assert placeholder_values(None, "", "") == {}


@pytest.mark.parametrize(
    ("time", "partition", "why"),
    [
        ("tomorrow", "2018", "'tomorrow' is not a time"),
        ("2026-03-01T05:00", "2018", "has no time zone, and neither has a `schedule` of the pipeline"),
        ("2026-03-01T05:00Z", "", "partition }} has no value in this run"),
        ("", "../x", "is not a valid name of a partition"),
    ],
)
def test_wrong_values_are_refused(plain: Path, time: str, partition: str, why: str) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        placeholder_values(plain, time, partition)
    assert why in str(refused.value)


def test_the_pipeline_of_the_environment_has_no_placeholders() -> None:
    with pytest.raises(InvalidPipeline, match="are for pipeline files"):
        placeholder_values(None, "", "2018")
