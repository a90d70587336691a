"""The decisions of a requeue and a release, without a lake."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from sluice.contracts.lake_queries import RequeuePlan, RequeueSelection
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.write import Write
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


MERGING = PIPELINE.model_copy(
    update={"write": Write.model_validate({"mode": "merge", "keys": ["id"], "source": {"path": "in.csv"}})}
)


def plan(
    location: str = "v1.json",
    snapshot: int | None = 1,
    /,
    pipeline: Pipeline = PIPELINE,
    quarantined: Mapping[str, str] = MappingProxyType(QUARANTINED),
    columns: Mapping[str, str] = MappingProxyType(COLUMNS),
    inexact: Sequence[str] = (),
    **selection: Any,
) -> RequeuePlan:
    return plan_requeue(
        pipeline,
        "geo.cities",
        RequeueSelection.model_validate(selection),
        columns=columns,
        quarantined_columns=quarantined,
        inexact=inexact,
        quarantine_location=location,
        quarantine_snapshot=snapshot,
        spark_catalog="lake",
    )


def test_a_requeue_moves_all_rows_with_the_checks_of_the_pipeline() -> None:
    planned = plan().pipeline
    assert planned.write.statements == [
        "INSERT INTO `lake`.`geo`.`cities` (`id`, `name`) "
        "SELECT `id` AS `id`, `name` AS `name` FROM `lake`.`geo`.`cities__quarantine`",
        "DELETE FROM `lake`.`geo`.`cities__quarantine`",
    ]
    assert planned.tables["geo.cities"] == PIPELINE.tables["geo.cities"] and "geo.cities__quarantine" in planned.tables


def test_a_requeue_moves_the_selected_rows_repaired() -> None:
    insert, delete = plan(run="r'1", where="id = 2", values=["name = upper(name)"]).pipeline.write.statements
    where = " WHERE quarantined_run = 'r\\'1' AND (id = 2)"
    assert "SELECT `id` AS `id`, (upper(name)) AS `name` FROM" in insert
    assert insert.endswith(where) and delete.endswith(where)


def test_a_requeue_of_a_pipeline_that_merges_merges_by_its_keys() -> None:
    planned = plan(pipeline=MERGING, values=["name = upper(name)"]).pipeline
    merge, delete = planned.write.statements
    assert merge.startswith("MERGE INTO `lake`.`geo`.`cities` AS old USING (SELECT * FROM (SELECT *, if(count(*) OVER")
    assert "ON old.`id` = new.`id` WHEN MATCHED THEN UPDATE SET old.`id` = new.`id`, old.`name` = new.`name`" in merge
    assert merge.endswith("WHEN NOT MATCHED THEN INSERT (`id`, `name`) VALUES (new.`id`, new.`name`)")
    assert delete == "DELETE FROM `lake`.`geo`.`cities__quarantine`"
    assert (planned.write.mode, planned.write.keys, planned.write.carries_rows) == ("requeue", ["id"], True)


def test_rows_of_a_load_that_was_replaced_are_not_requeued() -> None:
    write = Write.model_validate({"mode": "overwrite", "source": {"path": "in.csv"}})
    with pytest.raises(InvalidPipeline, match="requeued rows would be older than those of the table"):
        plan(pipeline=PIPELINE.model_copy(update={"write": write}))


def test_no_value_of_a_renamed_column_is_lost() -> None:
    """In an earlier version, the rows came back without the values, which were deleted from the quarantine table."""
    renamed = {**QUARANTINED, "note": "string"}

    def insert(*values: str) -> str:
        return plan(quarantined=renamed, values=list(values)).pipeline.write.statements[0]

    for values in ((), ("name=upper(name)",)):
        with pytest.raises(InvalidPipeline, match=r"'note' that geo.cities lacks: .* --set NEW=note; .* note=NULL"):
            insert(*values)
    assert "(coalesce(name, note)) AS `name`" in insert("name=coalesce(name, note)")
    assert "note" not in insert("note=NULL")
    for value, column in {"note=name": "note", "quarantined_run=NULL": "quarantined_run"}.items():
        with pytest.raises(InvalidPipeline, match=f"'{column}' is not a column"):
            insert(value)


def test_a_requeue_rounds_and_cuts_no_value() -> None:
    """The table was dropped and created again with another type."""
    tables: dict[str, Any] = {"columns": {"id": "int", "v": "int"}, "quarantined": {"id": "int", "v": "double"}}
    assert "`v` AS `v`" in plan(**tables).pipeline.write.statements[0]
    with pytest.raises(InvalidPipeline, match=r"have 'v' as double, and geo.cities has it as int, .* --set v=EXPR"):
        plan(**tables, inexact=["v"])
    repaired = plan(**tables, inexact=["v"], values=["v=round(v)"])
    assert "(round(v)) AS `v`" in repaired.pipeline.write.statements[0]


def test_the_condition_of_a_requeue_may_use_functions_of_the_row() -> None:
    where = "upper(trim(name)) = 'X' AND id BETWEEN 1 AND 2 AND regexp_like(name, 'x') AND coalesce(id, 0) > 0"
    assert where in plan(where=where).pipeline.write.statements[1]


def test_the_same_requeue_has_the_same_identity_until_the_quarantine_table_changes() -> None:
    assert plan().input == plan().input
    versions = [("v1.json", 1), ("v2.json", 1), ("v1.json", 2), ("v1.json", None)]
    assert len({plan(location, snapshot).input.digest for location, snapshot in versions}) == len(versions)
    assert plan().input != plan(where="id = 2").input


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"values": ["nme=1"]}, "--set 'nme=1': 'nme' is not a column (did you mean 'name'?)"),
        ({"values": ["name"]}, "--set 'name': write COLUMN=SQL, such as name=NULL"),
        ({"values": ["name=max(name)"]}, "aggregates"),
        ({"where": "nme = 1"}, "there is no column 'nme' (did you mean 'name'?)"),
        ({"where": "rand() < 0.5"}, "rand() may give another result"),
        ({"where": "name < current_user"}, "may not be called: it reveals the account"),
        ({"where": "id < unix_timestamp()"}, "current_timestamp() may give another result"),
        ({"where": "name = uuid()"}, "uuid() may give another result"),
        ({"where": "id > 1 AND id < size(shuffle(array(id)))"}, "shuffle() may give another result"),
        ({"where": "my_function(id)"}, "is not a function of Spark's that a pipeline may call"),
        ({"where": "id IN (SELECT 1)"}, "contains a query"),
    ],
)
def test_a_wrong_selection_is_refused(selection: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        plan(**selection)
    assert message in str(raised.value)


def test_the_requeued_table_is_named_or_the_only_one() -> None:
    assert requeued_table(PIPELINE, None) == requeued_table(PIPELINE, "geo.cities") == "geo.cities"
    with pytest.raises(InvalidPipeline, match="are: geo"):
        requeued_table(PIPELINE, "geo.towns")


SUMMARY = QuarantineSummary(
    branch="q", run_id="r", workflow_id="w", pipeline="cities", cause="", reason="", expires="", installation="here"
)


def test_a_release_starts_from_the_verified_rows() -> None:
    resume = plan_release(SUMMARY, "b1", VerifiedWrite(head="h1", attempt=1, tables={"a.b": 1}), ["DELETE FROM a.b"])
    assert (resume.branch, resume.run_id, resume.base, resume.head) == ("q", "r", "b1", "h1")
    assert resume.statements == ["DELETE FROM a.b"]


def test_a_release_is_audited_by_the_same_pipeline() -> None:
    summary = SUMMARY
    changed = PIPELINE.model_copy(update={"description": "changed"})
    assert choose_pipeline(summary, PIPELINE, None) is PIPELINE
    assert choose_pipeline(summary, PIPELINE, changed) is changed
    with pytest.raises(InvalidPipeline, match="by --pipeline"):
        choose_pipeline(summary, None, None)
    with pytest.raises(InvalidPipeline, match="is of the pipeline 'cities', not of 'towns'"):
        choose_pipeline(summary, None, PIPELINE.model_copy(update={"name": "towns"}))
