"""`source.schema` consists of names and types: no expression reaches Spark through it."""

import pytest

from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.sql.schema_ddl import schema_problem, schema_types, stored_type

GOOD = [
    "id INT",
    "id BIGINT NOT NULL, s STRING COMMENT 'it''s', `odd, name``` decimal(10, 2)",
    'a: int, b: string COMMENT "x"',
    "m MAP<STRING, STRUCT<a: INT, b: ARRAY<ARRAY<ARRAY<INT>>>>>",
    "a ARRAY<ARRAY<ARRAY<DECIMAL(9,2)>>>, e STRUCT<>, t TIMESTAMP_NTZ",
    "s STRUCT<a: INT NOT NULL COMMENT 'x', b DOUBLE>",
    "i INTERVAL, d INTERVAL DAY TO SECOND, y INTERVAL YEAR",
    "s STRING COLLATE UTF8_BINARY, u STRING COLLATE `utf8_binary`, t TIME(6), v VARIANT",
    "default INT, generated STRING, comment STRING, not INT",
    "a INT -- the first\n, b INT /* the second */",
]
HOSTILE = [
    (
        "a STRING COLLATE UTF8_LCASE",
        "COLLATE at line 1, column 10 states the collation UTF8_LCASE, which no table keeps",
    ),
    ("a INT, s STRUCT<b: STRING COLLATE `UNICODE_CI`>", "COLLATE at line 1, column 27 states the collation UNICODE_CI"),
    ("a STRING COLLATE system.builtin.UNICODE", "states the collation system.builtin.UNICODE"),
    ("a STRING COLLATE", "it ends where the name of a collation should be"),
    ("a INT DEFAULT 1", "DEFAULT at line 1, column 7 is an expression that Spark would run"),
    ("a STRING default reflect('java.lang.System', 'getenv', 'PATH')", "DEFAULT at line 1, column 10"),
    ("a INT,\nb INT NOT NULL DEFAULT (SELECT 1)", "DEFAULT at line 2, column 16"),
    ("a INT /* , */ DEFAULT 1", "DEFAULT at line 1, column 15"),
    ("a INT GENERATED ALWAYS AS (b + 1), b INT", "GENERATED at line 1, column 7 is an expression"),
    ("a INT COMMENT 'x' DEFAULT 1", "DEFAULT at line 1, column 19"),
    ("s STRUCT<a: INT DEFAULT 1>", "DEFAULT at line 1, column 17"),
    ("a INT CHECK (a > 0)", "'CHECK' at line 1, column 7 is not part of a schema"),
    ("a INT PRIMARY KEY", "'PRIMARY' at line 1, column 7"),
    ("a INT, CONSTRAINT c CHECK (a > 0)", "'c' at line 1, column 19 is not a type"),
    ("a INT) USING text LOCATION '/etc' --", "')' at line 1, column 6"),
    ("a INT; DROP TABLE n.t", "';' at line 1, column 6"),
    ("a INT COMMENT concat('x', 'y')", "the text of the comment should be there"),
    ("a STRING COMMENT '${env:HOME}'", "reads a variable"),
    ("a udt", "'udt' at line 1, column 3 is not a type"),
    ("a strin", "did you mean 'string'"),
    ('{"type": "struct", "fields": []}', "is not SQL"),
    ("a", "it ends where a type should be"),
    ("a INT,", "it ends where the name of a column should be"),
    ("a ARRAY<INT", "it ends where `>` should be"),
    ("a " + "ARRAY<" * 20_000, "its types nest more than 100 deep, which is the limit"),
    ("-- nothing", "it is empty"),
    ("a INT, v VARCHAR(3)", "VARCHAR at line 1, column 10 states the length of a text, which no table keeps: write"),
    ("s STRUCT<c: char(3)>", "CHAR at line 1, column 13 states the length"),
    ("a character(5)", "write STRING, and add the check string_length"),
]


@pytest.mark.parametrize("text", GOOD)
def test_names_and_types_are_a_schema(text: str) -> None:
    assert schema_problem(text) is None


@pytest.mark.parametrize(("text", "problem"), HOSTILE)
def test_everything_else_is_refused(text: str, problem: str) -> None:
    assert problem in str(schema_problem(text))


def test_a_pipeline_file_says_which_line() -> None:
    text = "name: p\nwrite:\n  source:\n    path: a.csv\n    schema: a INT DEFAULT 1\ntables: [n.t]\n"
    with pytest.raises(InvalidPipeline, match=r"p.yml:5: write.source.schema: DEFAULT at line 1, column 7 is an"):
        parse_pipeline(text, "p.yml")


def test_types_of_a_schema_as_a_table_stores_them() -> None:
    stated = "id BIGINT NOT NULL, a: dec(9, 2) COMMENT 'x', s STRUCT<b: INT, C: SMALLINT>, t TIMESTAMP, u TIMESTAMP_NTZ"
    types = schema_types(
        f"{stated}, c String COLLATE UTF8_BINARY, l ARRAY<ARRAY<ARRAY<INT>>>, i INTERVAL DAY TO SECOND"
    )
    assert {name: stored_type(type) for name, type in types.items()} == {
        "id": "long",
        "a": "decimal(9, 2)",
        "s": "struct<b: INT, C: SMALLINT>",
        "t": "timestamptz",
        "u": "timestamp",
        "c": "string",
        "l": "list<ARRAY<ARRAY<INT>>>",
        "i": "interval DAY TO SECOND",
    }
