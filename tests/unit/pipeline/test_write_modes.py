"""The table of write modes: every mode has an entry, a function in the job, and a row in the documents."""

from typing import get_args

import pytest
from pydantic import ValidationError

from devstack.stack import ROOT
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.write import Write
from sluice.pipeline.write_modes import FIELDS, WRITE_MODES, Mode, field_problem
from spark_jobs.ingest import _JOBS_ON_TABLES, _WRITERS

VALUES: dict[str, object] = {
    "source": {"path": "a.csv"},
    "keys": ["id"],
    "statements": ["DELETE FROM a.b"],
    "options": {"a": "b"},
    "transform": "SELECT 1",
}


def test_every_mode_has_an_entry_and_a_function() -> None:
    modes = set(get_args(Mode))
    assert set(WRITE_MODES) == modes
    assert set(_JOBS_ON_TABLES) == {name for name, mode in WRITE_MODES.items() if mode.reads_tables}
    assert set(_WRITERS) == modes - set(_JOBS_ON_TABLES)
    pipelines = (ROOT / "docs" / "pipelines.md").read_text()
    assert all(f"`{mode}`" in pipelines for mode in modes)


@pytest.mark.parametrize("mode", get_args(Mode))
def test_a_mode_takes_its_fields_and_no_others(mode: Mode) -> None:
    traits = WRITE_MODES[mode]
    assert traits.required | traits.optional <= set(FIELDS)
    given = {field: VALUES[field] for field in traits.required}
    assert Write.model_validate({"mode": mode, **given}).mode == mode
    for field in traits.required:
        assert field_problem(mode, given.keys() - {field})
    for field in FIELDS:
        if field in traits.required | traits.optional:
            assert field_problem(mode, given.keys() | {field}) is None
        else:
            with pytest.raises(ValidationError, match=f"{field}|reads tables"):
                Write.model_validate({"mode": mode, **given, field: VALUES[field]})


def test_what_a_mode_implies_holds_together() -> None:
    for mode in WRITE_MODES.values():
        assert mode.summary and not mode.summary.endswith(".")
        assert mode.can_be_rebased or not mode.rebased_by_default
        assert not (mode.reads_source_alone and mode.reads_tables)
        assert ("source" in mode.required) != mode.reads_tables


def test_a_users_program_may_change_a_schema() -> None:
    assert not Write(job="theirs.py").schema_is_fixed
    assert Write.model_validate({"source": {"path": "a.csv"}}).schema_is_fixed


@pytest.mark.parametrize(
    ("mode", "meant"),
    [
        ("upsert", "not 'upsert' (upsert is 'merge')"),
        ("appnd", "not 'appnd' (did you mean 'append'?)"),
        ("x", "not 'x'"),
    ],
)
def test_an_unknown_mode_is_answered_with_those_that_a_pipeline_may_have(mode: str, meant: str) -> None:
    text = f"name: x\nwrite:\n  source: {{path: a.csv}}\n  mode: {mode}\ntables: {{a.b: {{}}}}\n"
    with pytest.raises(InvalidPipeline) as refused:
        parse_pipeline(text, "x.yml")
    assert str(refused.value).endswith(f"'sql' or 'compact', {meant}") and "requeue" not in str(refused.value)
