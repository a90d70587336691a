"""Unknown keys: refused in files and records, ignored in messages between processes."""

import importlib

import pytest
from pydantic import BaseModel, ValidationError

from devstack.stack import ROOT
from sluice.approval.decisions import Decision
from sluice.base_model import StrictModel, WireMessage, build_models
from sluice.contracts.references import RunRef
from sluice.pipeline.table import Table
from tests.harness.rooms import ALLOWED

WIRE = (
    *("sluice.contracts.", "sluice.approval.", "sluice.checks.verdicts", "sluice.diff."),
    *("engine.queries.", "lakehouse.lake.row_files", "runtime.payloads"),
)
"""Modules whose models are messages between processes, or parts of them. The models of all others are strict."""


def below(kind: type[BaseModel]) -> set[type[BaseModel]]:
    """Return all subclasses of a model."""
    return set(kind.__subclasses__()).union(*map(below, kind.__subclasses__()))


def all_models() -> list[type[BaseModel]]:
    """Return the models of all rooms, without the two bases."""
    for room in ALLOWED:
        for file in (ROOT / room).rglob("*.py"):
            if "base_model import" in file.read_text():
                importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    models = below(BaseModel) - {StrictModel, WireMessage}
    return sorted((each for each in models if each.__module__.split(".")[0] in ALLOWED), key=str)


def test_each_model_has_the_base_of_its_place() -> None:
    models = all_models()
    assert len(models) > 200
    for model in models:
        base = WireMessage if model.__module__.startswith(WIRE) else StrictModel
        assert issubclass(model, base), f"{model} is no {base.__name__}"


def test_no_model_overrides_its_base() -> None:
    for model in all_models():
        base = WireMessage if issubclass(model, WireMessage) else StrictModel
        assert all(model.model_config.get(key) == base.model_config.get(key) for key in ("frozen", "extra")), model
    for room in ALLOWED:
        for file in (ROOT / room).rglob("*.py"):
            for line in file.read_text().splitlines():
                repeats = "model_config =" in line and ("extra" in line or "frozen" in line)
                assert not repeats or file.name == "base_model.py", f"{file.relative_to(ROOT)}: {line}"


def test_a_worker_builds_the_models_that_an_import_leaves_unbuilt() -> None:
    class Late(WireMessage):
        """A message that nothing has used."""

    models: list[type[BaseModel]] = [*all_models(), Late]
    assert not Late.__pydantic_complete__
    build_models()
    assert all(model.__pydantic_complete__ for model in models)


def test_a_key_that_a_later_release_adds() -> None:
    """A message ignores it. A part of it that comes from a user's file does not."""
    run = {"run_id": "r", "workflow_id": "w", "pipeline": "p", "label": "p", "attempt": 1}
    assert RunRef.model_validate({**run, "of_a_later_release": 1}) == RunRef.model_validate(run)
    assert Decision.model_validate({"approve": True, "of_a_later_release": 1}) == Decision(approve=True)
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Table.model_validate({"chekcs": []})


@pytest.mark.parametrize("base", [StrictModel, WireMessage])
def test_values_are_immutable_and_can_be_keys(base: type[BaseModel]) -> None:
    class Value(base):  # type: ignore[misc, valid-type]
        number: int

    value = Value(number=1)
    assert {value: "one"}[Value(number=1)] == "one"
    with pytest.raises(ValidationError, match="frozen"):
        value.number = 2
