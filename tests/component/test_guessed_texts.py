"""Values of a guessed type that a transform puts into a column of text: their text stays, or they are refused."""

import pytest

from tests.harness.ingester import Ingester, file

BEGIN = "id,code\n0,a\n"


def begin(job: Ingester) -> None:
    """Make a table whose column `code` is text."""
    job({"path": file(job, "begin.csv", BEGIN)})


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        (["1.25", "10.50"], "double", "'10.50' of the column code would become '10.5'"),
        (["1.5", "7"], "double", "'7' of the column code would become '7.0'"),
        (["1", "99999999999999999999.50"], "decimal(38,1)", "of the column code would become"),
        (["TRUE"], "boolean", "'TRUE' of the column code would become 'true'"),
        (
            ["2026-01-31T10:30:00Z"],
            "timestamp",
            "'2026-01-31T10:30:00Z' of the column code would become '2026-01-31 10",
        ),
    ],
)
def test_a_text_that_its_guessed_type_would_change_is_refused(
    values: list[str], kind: str, shown: str, job: Ingester
) -> None:
    begin(job)
    path = file(job, "in.csv", "id,code\n" + "".join(f"{n},{value}\n" for n, value in enumerate(values, 1)))
    refused = job.refused({"path": path}, transform="SELECT id, code FROM source", show_values=True)
    assert f"code is STRING in {job.table}, and the transform gives it values of the guessed type {kind}" in refused
    assert shown in refused and path in refused
    assert "name the columns and their types in source.schema" in refused
    job({"path": path, "schema": "id INT, code STRING"}, transform="SELECT id, code FROM source")
    assert [row["code"] for row in job.rows()] == ["a", *values]


@pytest.mark.parametrize("condition", ["", " WHERE id > 0"])
def test_renamed_columns_are_verified(job: Ingester, condition: str) -> None:
    begin(job)
    path = file(job, "in.csv", "id,sku\n1,10.50\n")
    transform = f"SELECT id, sku AS code FROM source{condition}"
    assert "'10.50' of the column sku would become '10.5'" in job.refused(
        {"path": path}, transform=transform, show_values=True
    )
    assert "'10.50'" not in job.refused({"path": path}, transform=transform)


def test_texts_that_stay_the_same_are_loaded(job: Ingester) -> None:
    begin(job)
    path = file(job, "in.csv", "id,code,day,share\n1,17,2026-01-31,1.5\n2,,,2.25\n")
    job({"path": path}, transform="SELECT id, code FROM source")
    job({"path": path}, transform="SELECT id + 10 AS id, day AS code FROM source WHERE id = 1")
    job({"path": path}, transform="SELECT id + 20 AS id, share AS code FROM source")
    assert [row["code"] for row in job.rows()] == ["a", "17", None, "2026-01-31", "1.5", "2.25"]


def test_a_cast_in_the_transform_is_a_choice(job: Ingester) -> None:
    begin(job)
    path = file(job, "in.csv", "id,code\n1,10.50\n")
    job({"path": path}, transform="SELECT id, CAST(code AS STRING) AS code FROM source")
    assert [row["code"] for row in job.rows()] == ["a", "10.5"]


def test_numbers_of_json_and_of_folders_are_verified(job: Ingester) -> None:
    begin(job)
    path = file(job, "in.jsonl", '{"id": 1, "code": 10.50}\n')
    refused = job.refused({"path": path}, transform="SELECT id, code FROM source", show_values=True)
    assert "'10.50' of the column code would become '10.5'" in refused
    file(job, "days/code=10.50/in.csv", "id\n1\n")
    source = {"path": str(job.folder / "days"), "format": "csv"}
    refused = job.refused(source, transform="SELECT id, code FROM source", show_values=True)
    assert "'10.50' of the column code would become '10.5'" in refused


def test_numbers_in_objects_of_json_are_verified(job: Ingester) -> None:
    job({"path": file(job, "begin.jsonl", '{"id": 1, "o": {"code": "a"}, "l": ["a"]}\n')})
    path = file(job, "in.jsonl", '{"id": 1, "o": {"code": 10.50}, "l": ["b"]}\n')
    refused = job.refused({"path": path}, transform="SELECT id, o, l FROM source", show_values=True)
    assert "o is struct<code:string> in " in refused and "10.50" in refused and "10.5}" in refused


def test_times_in_a_stated_notation_are_verified(job: Ingester) -> None:
    begin(job)
    path = file(job, "in.csv", "id,code\n1,31.01.2026\n")
    source = {"path": path, "options": {"dateFormat": "dd.MM.yyyy"}}
    refused = job.refused(source, transform="SELECT id, code FROM source", show_values=True)
    assert "'31.01.2026' of the column code would become '2026-01-31'" in refused


def test_booleans_of_json_keep_their_text(job: Ingester) -> None:
    job({"path": file(job, "begin.jsonl", '{"id": 1, "flag": "a", "o": {"f": "a"}}\n')})
    path = file(job, "in.jsonl", '{"id": 2, "flag": true, "o": {"f": false}}\n')
    job({"path": path}, transform="SELECT id, flag, o FROM source")
    assert [(row["flag"], row["o"]["f"]) for row in job.rows()] == [("a", "a"), ("true", "false")]


def test_the_message_says_what_to_do_if_the_text_comes_from_elsewhere(job: Ingester) -> None:
    job({"path": file(job, "begin.csv", "id,at,loaded\n1,2026-01-31 10:30:00,a\n")})
    path = file(job, "in.csv", "id,at\n2,2026-01-31T10:30:00Z\n")
    transform = "SELECT id, at, TIMESTAMP '2026-02-01 00:00:00' AS loaded FROM source"
    assert "or if loaded does not come from at, write a CAST to STRING" in job.refused(
        {"path": path}, transform=transform
    )
    job(
        {"path": path},
        transform=transform.replace("TIMESTAMP '2026-02-01 00:00:00'", "CAST(DATE '2026-02-01' AS STRING)"),
    )
    assert [row["loaded"] for row in job.rows()] == ["a", "2026-02-01"]
