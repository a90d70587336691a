"""SQL of a pipeline reaches only rows of the catalog's tables: refused and accepted queries."""

import pytest
from pydantic import ValidationError

from sluice.checks.query import ExpressionIsTrue, Sql
from sluice.pipeline.model import Pipeline
from sluice.pipeline.write import Write
from sluice.sql.expression import (
    expression_problem,
    query_problem,
    statement_problem,
    without_comments,
)
from tests.harness.ordinary_sql import ORDINARY_QUERIES

HOSTILE_QUERIES = [
    ("SELECT * FROM text.`/etc/passwd`", "'text./etc/passwd' is not a table of the catalog"),
    ("SELECT * FROM csv.`/etc/passwd`", "is not a table of the catalog"),
    ("SELECT * FROM json.`/etc/passwd`", "is not a table of the catalog"),
    ("SELECT * FROM parquet.`s3a://b/k`", "is not a table of the catalog"),
    ("SELECT * FROM delta.`/lake`", "is not a table of the catalog"),
    ("SELECT * FROM iceberg.`file:/lake/t/metadata/v1.json`", "is not a table of the catalog"),
    ("SELECT * FROM `org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`/etc/passwd`", "is not a table"),
    ("SELECT * FROM TEXT.relative", "is not a table of the catalog"),
    ("SELECT 1 WHERE EXISTS (SELECT * FROM text.`/etc/passwd`)", "is not a table of the catalog"),
    ("WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a", "is not a table of the catalog"),
    ("SELECT (SELECT max(value) FROM text.`/etc/passwd`) FROM n.t", "is not a table of the catalog"),
    ("SELECT * FROM n.t JOIN text.`/etc/passwd` ON true", "is not a table of the catalog"),
    ("SELECT * FROM n.t UNION ALL SELECT * FROM text.`/etc/passwd`", "is not a table of the catalog"),
    ("SELECT * FROM spark_catalog.default.t", "other catalogs are not read"),
    ("SELECT * FROM global_temp.t", "'global_temp.t' is not a table of the catalog"),
    ("SELECT * FROM information_schema.tables", "is not a table of the catalog"),
    ("SELECT * FROM system.builtin.t", "is not a table of the catalog"),
    ("SELECT * FROM sluice_rows", "'sluice_rows' is not a table of the catalog: write namespace.table"),
    ("SELECT * FROM n.t.snapshots", "'n.t.snapshots' is metadata or a version of a table"),
    ("SELECT * FROM n.t.branch_main", "is metadata or a version of a table"),
    ("SELECT * FROM n.t.all_data_files", "is metadata or a version of a table"),
    ("SELECT * FROM n.`t@main`", "it names a branch"),
    ("SELECT * FROM n.t VERSION AS OF 1", "it names a version"),
    ("SELECT * FROM n.t TIMESTAMP AS OF '2024-01-01'", "it names a version"),
    ("SELECT * FROM identifier('text.`/etc/passwd`')", "'identifier' at line 1, column 15 may not be called"),
    ("SELECT * FROM read_files('/etc')", "'read_files' at line 1, column 15 is not a function of Spark's"),
    ("SELECT * FROM my_udtf(TABLE(n.t))", "'my_udtf' at line 1, column 15 is not a function"),
    ("SELECT reflect('java.lang.System', 'getenv', 'X')", "'reflect' at line 1, column 8 may not be called: it calls"),
    ("SELECT REFLECT ('java.lang.System', 'exit', 1)", "'reflect' at line 1, column 8 may not be called"),
    ("SELECT `reflect`('java.lang.System', 'getenv')", "'reflect' at line 1, column 8 may not be called"),
    ("SELECT system.builtin.reflect('a', 'b')", "'reflect' at line 1, column 23 may not be called"),
    ("SELECT java_method('java.lang.System', 'getenv')", "'java_method' at line 1, column 8 may not be called"),
    ("SELECT try_reflect('java.lang.System', 'getenv')", "'try_reflect' at line 1, column 8 may not be called"),
    ("SELECT 1\nFROM n.t\nWHERE reflect('a', 'b')", "'reflect' at line 3, column 7"),
    ("WITH reflect(a) AS (SELECT 1) SELECT reflect('a', 'b')", "'reflect' at line 1, column 6 may not be called"),
    ("SELECT own(1) FROM n.t AS own(a)", "'own' is not a function of Spark's"),
    ("SELECT n.own(1)", "'own' at line 1, column 10 is not a function of Spark's"),
    ("SELECT current_user", "it reveals the account of the worker"),
    ("SELECT from_xml(a, 'x INT', map('rowValidationXSDPath', '/etc/x')) FROM n.t", "files that its options name"),
    ("SELECT ai_query('model', a) FROM n.t", "'ai_query' at line 1, column 8 is not a function"),
    ("SELECT http_get('http://x') FROM n.t", "'http_get' at line 1, column 8 is not a function"),
    ("SELECT TRANSFORM(a) USING 'cat' AS (b) FROM n.t", "USING at line 1, column 21 runs a script"),
    ("SELECT MAP a USING 'cat' FROM n.t", "runs a script"),
    ("FROM n.t SELECT TRANSFORM(a) USING 'cat'", "it does not only read"),
    ("FROM n.t INSERT INTO n.u SELECT *", "it does not"),
    ("FROM n.t SELECT *", "it does not only read"),
    ("TABLE n.t", "it does not only read"),
    ("SELECT * FROM n.t |> WHERE a", "|> at line 1, column 19 cannot be checked"),
    ("WITH x AS (INSERT INTO n.t SELECT 1) SELECT * FROM x", "insert is not part of a query that only reads"),
    ("SET VAR x = 1", "it does not only read"),
    ("SET spark.sql.catalog.c.ref = main", "it does not only read"),
    ("EXECUTE IMMEDIATE 'DROP TABLE n.t'", "it does not only read"),
    ("CALL nessie.system.expire_snapshots('n.t')", "it does not only read"),
    ("ADD JAR '/tmp/x.jar'", "it does not only read"),
    ("CREATE TEMPORARY VIEW x AS SELECT 1", "it does not only read"),
    ("CACHE TABLE n.t", "it does not only read"),
    ("SHOW TABLES", "it does not only read"),
    ("SELECT 1; DROP TABLE n.t", "it is not one query"),
    ("SELECT :secret", "placeholder is not part of a query"),
    ("SELECT ?", "is not SQL"),
    ("SELECT '${env:NESSIE_TOKEN}'", "`${` at line 1, column 9 reads a variable"),
    ("SELECT ${spark.sql.catalog.nessie.authentication.token}", "reads a variable"),
    ("SELECT * FROM parquet.s3://bucket/key", "it does not parse"),
    ("SELECT $$a$$", "is not SQL"),
    ("SELECT 1 /* without an end", "the comment at line 1, column 10 does not end"),
    ("SELECT 'without an end", "is not SQL"),
    ("SELECT" + " (" * 200 + "1" + ")" * 200, "brackets deep: the limit is 100"),
    ("SELECT " + "1 + " * 100_000 + "1", "the limit is 200,000"),
    ("", "it is empty"),
]


@pytest.mark.parametrize(("text", "words"), HOSTILE_QUERIES)
def test_a_hostile_query_is_refused_with_what_and_where(text: str, words: str) -> None:
    assert words in str(query_problem(text))
    with pytest.raises(ValidationError):
        Sql(query=text)
    with pytest.raises(ValidationError):
        Write.model_validate({"source": {"path": "a.csv"}, "transform": text})


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("SELECT 1 -- \\\n'\n, reflect('a') -- '", "reflect"),  # Spark continues the comment, so the quote is none
        ("SELECT 1 /* /* */ ' */ , reflect('a') -- '", "reflect"),  # comments of Spark nest
        ("SELECT 1 /* ' */, reflect('a') /* ' */", "reflect"),
        ("SELECT r'\\', reflect('a'), '", "reflect"),  # in a raw string, a backslash is literal
        ('SELECT "\\"", reflect("a")', "reflect"),
        ("SELECT '\\'', reflect('a')", "reflect"),
        ("SELECT `a``b`, reflect('a')", "reflect"),
    ],
)
def test_quotes_and_comments_hide_nothing(text: str, hidden: str) -> None:
    problem = str(query_problem(text))
    assert hidden in problem or "does not parse" in problem or "is not SQL" in problem or "two ways" in problem
    assert query_problem(text) is not None


@pytest.mark.parametrize("text", ORDINARY_QUERIES)
def test_an_ordinary_query_is_accepted(text: str) -> None:
    assert query_problem(text) is None
    assert Sql(query=text).query


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reflect('java.lang.System', 'getenv', 'X') = 'x'", "'reflect' at line 1, column 1 may not be called"),
        ("a IN (SELECT value FROM text.`/etc/passwd`)", "contains a query"),
        ("EXISTS (SELECT 1 FROM n.t)", "contains a query"),
        ("sum(a) > 1", "aggregates"),
        ("row_number() OVER (ORDER BY a) = 1", "aggregates"),
        ("own(a)", "not a function of Spark's"),
        ("a = '${env:HOME}'", "reads a variable"),
        ("a) OR (b", "it must be one condition"),
        ("NOT " * 40_000 + "a", "does not parse"),
    ],
)
def test_a_hostile_condition_is_refused(text: str, words: str) -> None:
    assert words in str(expression_problem(text))
    with pytest.raises(ValidationError):
        ExpressionIsTrue(expression=text)
    with pytest.raises(ValidationError):
        ExpressionIsTrue(expression="a > 1", where=text)


@pytest.mark.parametrize(
    "text",
    [
        "a > 1 AND b IS NOT NULL OR length(c) BETWEEN 1 AND 3",
        "CASE WHEN a THEN b = 'x' ELSE c RLIKE '^a$' END",
        "d >= current_date() - INTERVAL 1 DAY AND NOT array_contains(xs, 1)",
        "a IN (" + ", ".join(map(str, range(20_000))) + ")",
        " OR ".join(f"a = {number}" for number in range(1_000)),
    ],
)
def test_an_ordinary_condition_is_accepted(text: str) -> None:
    assert expression_problem(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DROP TABLE n.t", "write DELETE FROM, UPDATE, MERGE INTO, INSERT, CREATE TABLE or ALTER TABLE"),
        ("TRUNCATE TABLE n.t", "is not allowed: write DELETE FROM"),
        ("CALL nessie.system.expire_snapshots('n.t')", "is not allowed: write DELETE FROM"),
        ("SET spark.sql.catalog.nessie.ref = main", "is not allowed: write DELETE FROM"),
        ("USE REFERENCE main IN nessie", "is not allowed: write DELETE FROM"),
        ("ADD JAR '/tmp/x.jar'", "is not allowed: write DELETE FROM"),
        ("SELECT 1", "is not allowed: write DELETE FROM"),
        ("CREATE VIEW n.v AS SELECT 1", "is not allowed: write DELETE FROM"),
        ("CREATE FUNCTION n.f AS 'a.B' USING JAR '/tmp/x.jar'", "is not allowed: write DELETE FROM"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1", "does not parse"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1", "directory is not part of"),
        ("INSERT INTO n.t SELECT * FROM text.`/etc/passwd`", "is not a table of the catalog"),
        ("INSERT INTO parquet.`/tmp/x` SELECT 1", "is not a table of the catalog"),
        ("INSERT INTO n.`t@main` SELECT 1", "names a branch"),
        ("INSERT INTO n.t SELECT reflect('a', 'b')", "may not be called"),
        ("INSERT INTO spark_catalog.d.t SELECT 1", "is not a table of the catalog"),
        ("DELETE FROM n.t WHERE a = (SELECT max(value) FROM csv.`/etc/x`)", "is not a table of the catalog"),
        ("UPDATE n.t SET a = java_method('a', 'b')", "may not be called"),
        ("MERGE INTO n.t USING csv.`/x` s ON t.a = s.a WHEN MATCHED THEN DELETE", "is not a table of the catalog"),
        ("WITH x AS (DELETE FROM n.u) INSERT INTO n.t SELECT 1", "contains another statement"),
        ("CREATE TABLE n.t USING csv OPTIONS (path '/etc') AS SELECT 1", "a table in the format csv"),
        ("CREATE TABLE n.t USING parquet AS SELECT 1", "a table in the format parquet"),
        ("CREATE TABLE n.t USING iceberg LOCATION '/etc' AS SELECT 1", "location property is not part of"),
        ("CREATE EXTERNAL TABLE n.t (a INT)", "external property is not part of"),
        ("CREATE TABLE n.t LIKE n.u", "like property is not part of"),
        ("CREATE TABLE n.t (a STRING DEFAULT reflect('a', 'b'))", "may not be called"),
        ("ALTER TABLE n.t CREATE BRANCH b", "ALTER TABLE may add"),
        ("ALTER TABLE n.t REPLACE BRANCH main AS OF VERSION 1", "ALTER TABLE may add"),
        ("ALTER TABLE n.t RENAME TO n.u", "ALTER TABLE may add"),
        ("ALTER TABLE n.t SET LOCATION '/etc'", "ALTER TABLE may add"),
        ("ALTER TABLE n.t ADD PARTITION (a = 1) LOCATION '/etc'", "ALTER TABLE may add"),
        ("ALTER TABLE n.`t@main` ADD COLUMN a INT", "names a branch"),
        ("ALTER TABLE n.t ADD COLUMN a STRING DEFAULT reflect('a', 'b')", "may not be called"),
        ("ALTER TABLE text.`/x` ADD COLUMN a INT", "is not a table of the catalog"),
        ("DELETE FROM n.t; DROP TABLE n.t", "it is not one statement"),
        ("DELETE FROM n.t WHERE a = '${env:X}'", "reads a variable"),
        ("DELETE FROM t", "'t' is not a table of the catalog"),
    ],
)
def test_a_hostile_statement_is_refused(text: str, words: str) -> None:
    assert words in str(statement_problem(text))
    with pytest.raises(ValidationError):
        Write(mode="sql", statements=[text])


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM n.t",
        "DELETE FROM nessie.n.t AS t WHERE EXISTS (SELECT 1 FROM n.u WHERE u.id = t.id)",
        "UPDATE n.t SET a = 1, b = b + 1 WHERE c RLIKE 'x'",
        "INSERT INTO n.t VALUES (9, 'z')",
        "INSERT INTO n.t (a, b) SELECT 1, 2 FROM n.u",
        "INSERT OVERWRITE n.t PARTITION (d = 'x') SELECT 1",
        "WITH x AS (SELECT 1) INSERT INTO n.t SELECT * FROM x",
        "INSERT INTO n.t WITH x AS (SELECT 1) SELECT * FROM x",
        "MERGE INTO n.t t USING (SELECT * FROM n.u) s ON t.id = s.id WHEN MATCHED AND s.x > 1 THEN UPDATE SET t.a = s.a"
        " WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a) WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "MERGE INTO n.t t USING n.u s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "CREATE TABLE n.t (a INT NOT NULL COMMENT 'c', b DECIMAL(9, 2)) USING iceberg"
        " PARTITIONED BY (days(a), bucket(16, b), truncate(4, c)) TBLPROPERTIES ('a' = 'b') COMMENT 'z'",
        "CREATE OR REPLACE TABLE n.t AS SELECT * FROM n.u",
        "CREATE TABLE IF NOT EXISTS n.t (a INT DEFAULT 1)",
        "ALTER TABLE n.t ADD COLUMNS (a INT, b STRING COMMENT 'z')",
        "ALTER TABLE n.t ADD COLUMN a DECIMAL(9, 2) AFTER b",
        "ALTER TABLE n.t RENAME COLUMN a TO b",
        "ALTER TABLE n.t ALTER COLUMN a TYPE bigint",
        "ALTER TABLE n.t DROP COLUMN a",
        "ALTER TABLE n.t ADD PARTITION FIELD bucket(16, a)",
        "ALTER TABLE n.t WRITE ORDERED BY a, b DESC",
        "ALTER TABLE n.t SET IDENTIFIER FIELDS a",
        "ALTER TABLE `n`.`t` SET TBLPROPERTIES ('comment' = 'x')",
    ],
)
def test_an_ordinary_statement_is_accepted(text: str) -> None:
    assert statement_problem(text) is None


def test_comments_go_and_the_rest_stays_where_it_was() -> None:
    assert (
        without_comments("SELECT 1 -- \\\n'\n, 2 /* a /* b */ */ , '-- x'")
        == "SELECT 1     \n \n, 2                 , '-- x'"
    )
    check = Sql(query="SELECT 1 -- a comment with a ' quote\nFROM n.t;")
    assert check.query.split() == ["SELECT", "1", "FROM", "n.t"]


def test_a_transform_reads_the_source_and_the_catalog() -> None:
    text = "SELECT *, input_file_name() AS file FROM source JOIN n.t USING (id)"
    write = {"source": {"path": "a.csv"}, "transform": text}
    assert Pipeline.model_validate({"name": "a", "write": write, "tables": {"n.t": {}}}).write.transform == text
