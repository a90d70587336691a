"""The schedule of a pipeline: valid and invalid schedules with their messages. Runs do not depend on it."""

import asyncio
from typing import Any, cast

import pytest

from runtime.run.start_run import make_request
from runtime.run.starter import Starter
from sluice.contracts.run_request import RunInput
from sluice.errors import InvalidPipeline
from sluice.pipeline.cron import Range, parse_cron
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline
from sluice.presentation.schedules import describe_schedule
from sluice.settings import Settings
from tests.harness.lake_client import client_without_attributes

FILE = """\
name: p
write: {{source: {{path: "in/{name}.csv"}}}}
tables: {{t.x: {{}}}}
"""
WHOLE = (
    "schedule: {cron: 30 5 * * MON-fri, zone: Europe/Berlin, overlap: buffer_one, catch_up: 6h, pause_on: failure}\n"
)


def parsed(more: str = "") -> Pipeline:
    return parse_pipeline(FILE.format(name="a") + more, "p.yml")


@pytest.mark.parametrize(
    ("text", "field", "ranges"),
    [
        ("0 5 * * *", "minute", [Range(0, 0)]),
        ("*/15 5 * * *", "minute", [Range(0, 59, 15)]),
        ("0 1,3-5,10-20/5 * * *", "hour", [Range(1, 1), Range(3, 5), Range(10, 20, 5)]),
        ("0 5 * jan-MAR *", "month", [Range(1, 3)]),
        ("0 5 * * mon-fri", "day_of_week", [Range(1, 5)]),
        ("0 5 * * *", "day_of_week", [Range(0, 6)]),
        ("0 5 * * 7", "day_of_week", [Range(0, 0)]),
        ("0 5 * * 5-7", "day_of_week", [Range(0, 0), Range(5, 5), Range(6, 6)]),
        ("0 5 31 2,3 *", "day_of_month", [Range(31, 31)]),
        ("0 5 29 2 *", "day_of_month", [Range(29, 29)]),
    ],
)
def test_cron_expressions_are_read(text: str, field: str, ranges: list[Range]) -> None:
    assert list(getattr(parse_cron(text), field)) == ranges


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0 5 * *", "is not a cron expression of five fields"),
        ("0 0 5 * * *", "is not a cron expression of five fields"),
        ("@daily", "is not a cron expression of five fields"),
        ("60 5 * * *", "the minute '60' is not between 0 and 59"),
        ("0 24 * * *", "the hour '24' is not between 0 and 23"),
        ("0 5 0 * *", "the day of the month '0' is not between 1 and 31"),
        ("0 5 * 13 *", "the month '13' is not between 1 and 12"),
        ("0 5 * * 8", "the day of the week '8' is not between 0 and 7"),
        ("0 5 * * fry", "the day of the week 'fry' is not one of sun, mon"),
        ("0 5-3 * * *", "the hour '5-3' ends before it begins"),
        ("*/0 5 * * *", "the step of the minute '*/0' is not between 1 and 59"),
        ("5/10 5 * * *", "write 5-59/10"),
        ("0 5 L * *", "the day of the month 'l' is not of the form"),
        ("0, 5 * * *", "the minute '' is not of the form"),
        ("0 5 1 * mon", "cron starts on days that match either, Temporal on days that match both"),
        ("0 5 30 2 *", "none of its months has a day 30"),
        ("0 5 31 4,jun *", "none of its months has a day 31"),
        ("-1 5 * * *", "the minute '-1' is not of the form"),
        ("٣ 5 * * *", "the minute '٣' is not of the form"),
    ],
)
def test_what_is_no_cron_expression_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidPipeline, match=r"p\.yml:4: schedule\.cron: ") as refused:
        parsed(f"schedule: {{cron: {text!r}}}\n")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("schedule: {zone: UTC}", "'cron' is missing; valid keys: cron, zone, overlap, catch_up, pause_on"),
        ("schedule: {cron: 0 5 * * *, zone: Europe/Berln}", "did you mean 'Europe/Berlin'?"),
        ("schedule: {cron: 0 5 * * *, zone: ../../etc/passwd}", "is not a valid time zone"),
        ("schedule: {cron: 0 5 * * *, zone: localtime}", "is not a valid time zone"),
        ("schedule: {cron: 0 5 * * *, overlap: terminate_other}", "input should be 'skip', 'buffer_one'"),
        ("schedule: {cron: 0 5 * * *, catch_up: 5s}", "5s is too short"),
        ("schedule: {cron: 0 5 * * *, catch_up: soon}", "is not a duration"),
        ("schedule: {cron: 0 5 * * *, pause_on: success}", "input should be 'failure'"),
        ("schedule: {cron: 0 5 * * *, catchup: 1h}", "unknown key 'catchup' (did you mean 'catch_up'?)"),
        ("schedule: daily", "schedule: "),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_line(more: str, why: str) -> None:
    with pytest.raises(InvalidPipeline, match=r"p\.yml:4: ") as refused:
        parsed(more)
    assert why in str(refused.value)


def test_a_schedule_is_described() -> None:
    schedule, plain = parsed(WHOLE).schedule, parsed("schedule: {cron: 0 5 * * *}\n").schedule
    assert schedule and plain and parsed().schedule is None
    assert describe_schedule(schedule) == (
        "30 5 * * mon-fri in Europe/Berlin, overlap buffer_one, missed starts up to 6h later, paused on failure"
    )
    assert describe_schedule(plain) == "0 5 * * * in UTC, overlap skip, missed starts up to 1d later"


def test_a_schedule_is_no_part_of_what_a_run_is() -> None:
    client = client_without_attributes()

    def request(pipeline: Pipeline, run_input: RunInput | None) -> Any:
        starter = Starter("ana", cast(Any, "/"))
        return asyncio.run(make_request(client, Settings(), pipeline, run_input, starter))

    assert parsed().digest == parsed(WHOLE).digest
    for run_input in (RunInput(digest="d"), None):
        assert request(parsed(WHOLE), run_input) == request(parsed(), run_input)
