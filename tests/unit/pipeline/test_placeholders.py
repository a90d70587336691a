"""Placeholders in pipeline files."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.placeholders import (
    NAMES,
    partition_values,
    placeholders_in,
    replace_placeholders,
    time_values,
)

FILE = """\
name: rides
write:
  source: {path: "data/rides-{{ partition }}.csv", format: csv, schema: "id INT, at DATE"}
  transform: SELECT * FROM source WHERE at >= DATE '{{ partition.start }}' AND at < DATE '{{ partition.end }}'
tables:
  nyc.rides:
    checks:
      - accepted_values: {column: at, values: ["{{partition.start}}"]}
"""


def test_they_are_replaced_in_paths_statements_and_checks() -> None:
    pipeline = parse_pipeline(FILE, "rides.yml", partition_values("2018-12"))
    assert pipeline.write.source and pipeline.write.source.paths == ["data/rides-2018-12.csv"]
    assert "DATE '2018-12-01' AND at < DATE '2019-01-01'" in str(pipeline.write.transform)
    assert "2018-12-01" in pipeline.tables["nyc.rides"].checks[0].model_dump_json()


def test_one_without_a_value_is_refused_with_its_line_alone() -> None:
    with pytest.raises(InvalidPipeline) as refused:
        parse_pipeline(FILE, "rides.yml")
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["rides.yml:3", "rides.yml:4", "rides.yml:8"]
    assert "--partition" in lines[0]


def test_a_misspelt_one_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidPipeline, match="did you mean 'partition'"):
        replace_placeholders("x{{ partiton }}", partition_values("2018"))
    with pytest.raises(InvalidPipeline, match=r"'2018' has no month"):
        replace_placeholders("x{{ partition.month }}", partition_values("2018"))


def test_the_name_of_a_pipeline_has_none() -> None:
    text = FILE.replace("name: rides", 'name: "rides-{{ partition }}"')
    with pytest.raises(InvalidPipeline, match=r"rides.yml:1: name"):
        parse_pipeline(text, "rides.yml", partition_values("2018-12"))


@pytest.mark.parametrize(
    ("partition", "start", "end"),
    [
        ("2018", "2018-01-01", "2019-01-01"),
        ("2020-02", "2020-02-01", "2020-03-01"),
        ("2018-12", "2018-12-01", "2019-01-01"),
        ("2020-02-28", "2020-02-28", "2020-02-29"),
        ("2018-12-31", "2018-12-31", "2019-01-01"),
    ],
)
def test_a_date_has_a_first_day_and_the_day_after_its_last(partition: str, start: str, end: str) -> None:
    values = partition_values(partition)
    assert (values["partition.start"], values["partition.end"]) == (start, end)


def test_a_partition_may_have_any_plain_name() -> None:
    assert partition_values("EU-west_1") == {"partition": "EU-west_1"}


@pytest.mark.parametrize(
    "partition", ["", "a b", "x'; DROP TABLE t", "../x", "2018-13", "2018-02-30", "a" * 101, "a\n"]
)
def test_a_partition_that_could_change_a_path_or_a_statement_is_refused(partition: str) -> None:
    with pytest.raises(InvalidPipeline):
        partition_values(partition)


def test_a_scheduled_time_has_parts_in_its_own_zone() -> None:
    values = time_values(datetime(2026, 3, 9, 0, 5, tzinfo=ZoneInfo("America/New_York")))
    assert values["scheduled_for"] == "2026-03-09T00:05:00-04:00"
    text = "{{scheduled_for.date}} {{ scheduled_for.hour }}:{{scheduled_for.minute}}"
    assert replace_placeholders(text, values) == "2026-03-09 00:05"
    assert values.keys() | partition_values("2018-01-01").keys() == set(NAMES)


def test_other_braces_stay_as_they_are() -> None:
    assert replace_placeholders("^a{2}{{1}}$ {{ }} {x}", {}) == "^a{2}{{1}}$ {{ }} {x}"
    assert placeholders_in({"a": ["{{ partition }}", {"b": "{{scheduled_for.date}}"}], "c": 1}) == {
        "partition",
        "scheduled_for.date",
    }
