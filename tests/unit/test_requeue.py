"""What a requeue and a release do: decided without a lake."""

import pytest

from sluice.contracts.lake_queries import QuarantineSummary, RequeuePlan, RequeueSelection
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.publishing.release import choose_pipeline, plan_release
from sluice.publishing.requeue import plan_requeue, requeued_table

PIPELINE = parse_pipeline(
    """\
name: cities
write: {source: {path: in.csv}}
tables:
  geo.cities:
    on_bad_rows: quarantine
    max_bad_rows: 10
    checks: [not_null: name]
""",
    "p.yml",
)
COLUMNS = {"id": "int", "name": "string"}
QUARANTINED = {**COLUMNS, "quarantined_run": "string"}


def plan(location: str = "v1.json", snapshot: int | None = 1, /, **selection: object) -> RequeuePlan:
    return plan_requeue(
        PIPELINE,
        "geo.cities",
        RequeueSelection.model_validate(selection),
        columns=COLUMNS,
        quarantined_columns=QUARANTINED,
        quarantine_location=location,
        quarantine_snapshot=snapshot,
        spark_catalog="lake",
    )


def test_a_requeue_moves_all_rows_with_the_checks_of_the_pipeline() -> None:
    planned = plan().pipeline
    assert planned.write.statements == [
        "INSERT INTO `lake`.`geo`.`cities` (`id`, `name`) SELECT `id`, `name` FROM `lake`.`geo`.`cities__quarantine`",
        "DELETE FROM `lake`.`geo`.`cities__quarantine`",
    ]
    assert planned.tables["geo.cities"] == PIPELINE.tables["geo.cities"] and "geo.cities__quarantine" in planned.tables


def test_a_requeue_moves_the_selected_rows_repaired() -> None:
    insert, delete = plan(run="r'1", where="id = 2", values=["name = upper(name)"]).pipeline.write.statements
    where = " WHERE quarantined_run = 'r\\'1' AND (id = 2)"
    assert "SELECT `id`, (upper(name)) FROM" in insert
    assert insert.endswith(where) and delete.endswith(where)


def test_the_same_requeue_has_the_same_identity_until_the_quarantine_table_changes() -> None:
    assert plan().input == plan().input
    versions = [("v1.json", 1), ("v2.json", 1), ("v1.json", 2), ("v1.json", None)]
    assert len({plan(location, snapshot).input.digest for location, snapshot in versions}) == len(versions)
    assert plan().input != plan(where="id = 2").input


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"values": ["nme=1"]}, "--set 'nme=1': 'nme' is no column (did you mean 'name'?)"),
        ({"values": ["name"]}, "is no column"),
        ({"values": ["name=max(name)"]}, "aggregates"),
        ({"where": "nme = 1"}, "there is no column 'nme' (did you mean 'name'?)"),
    ],
)
def test_a_wrong_selection_is_refused(selection: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        plan(**selection)
    assert message in str(raised.value)


def test_the_requeued_table_is_named_or_the_only_one() -> None:
    assert requeued_table(PIPELINE, None) == requeued_table(PIPELINE, "geo.cities") == "geo.cities"
    with pytest.raises(InvalidPipeline, match="are: geo"):
        requeued_table(PIPELINE, "geo.towns")


def test_a_release_starts_from_the_audited_rows() -> None:
    resume = plan_release("quarantine/x", "b1", "h1", ["DELETE FROM geo.cities"])
    assert (resume.branch, resume.base, resume.head, resume.obsolete_branches) == (
        "quarantine/x",
        "b1",
        "h1",
        ["quarantine/x"],
    )


def test_a_release_is_audited_by_the_same_pipeline() -> None:
    summary = QuarantineSummary(
        branch="q", run_id="r", workflow_id="w", pipeline="cities", cause="", reason="", expires="", installation=""
    )
    changed = PIPELINE.model_copy(update={"description": "changed"})
    assert choose_pipeline(summary, PIPELINE, None) is PIPELINE
    assert choose_pipeline(summary, PIPELINE, changed) is changed
    with pytest.raises(InvalidPipeline, match="by --pipeline"):
        choose_pipeline(summary, None, None)
    with pytest.raises(InvalidPipeline, match="is of the pipeline 'cities', not of 'towns'"):
        choose_pipeline(summary, None, PIPELINE.model_copy(update={"name": "towns"}))
