"""The columns that queries read and return, determined from their text."""

import pytest

from sluice.sql.query_columns import returned_columns, unknown_columns

TABLES = {"a.t": ["id", "name", "n", "ts", "xs"], "source": ["id", "amount", "ts"]}


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("SELECT * FROM a.t WHERE idd > 3", ["idd"]),
        ("SELECT T.IDD, t.ID FROM A.T t", ["IDD"]),
        ("SELECT x.n.p, n.p, a.t.id FROM a.t x", []),
        ("SELECT id, `na me` FROM a.t WHERE n['k'] = bad", ["na me", "bad"]),
        ("WITH w AS (SELECT id, count(*) c FROM a.t GROUP BY id) SELECT * FROM w WHERE c > 1 AND d = 2", ["d"]),
        ("SELECT id i, i + 1 AS j FROM a.t WHERE i > 2 ORDER BY j", []),
        ("SELECT id FROM a.t o WHERE 1 = (SELECT 1 FROM source s WHERE s.id = o.id AND amount > n AND o.x = 1)", ["x"]),
        ("SELECT * FROM (SELECT id FROM a.t) x(k) WHERE k = 1 AND id = 2", ["id"]),
        ("SELECT * FROM VALUES (1, 2) AS v(a, b) WHERE a = 1 AND c = 2", ["c"]),
        ("SELECT id FROM a.t UNION ALL SELECT id FROM source WHERE name = 1", ["name"]),
        ("SELECT *, row_number() OVER (PARTITION BY id ORDER BY tss) rn FROM a.t QUALIFY rn > 1", ["tss"]),
        ("SELECT max_by(name, ts) FILTER (WHERE idx > 1) FROM a.t", ["idx"]),
        ("SELECT k FROM a.t AS x(k, l, m, o, p) WHERE id = 1", ["id"]),
        ("SELECT user, current_catalog, localtimestamp, grouping__id FROM a.t GROUP BY id WITH CUBE", []),
        ("SELECT transform(xs, x -> x + 1), aggregate(xs, 0, (acc, x) -> acc + x) FROM a.t", []),
        ("SELECT datediff(DAY, ts, ts), dateadd(DAY, 1, ts), year(ts), ts + INTERVAL 1 DAY FROM a.t", []),
        ("SELECT current_date, current_timestamp, _file, id::int FROM a.t WHERE ts > now() - INTERVAL '2' HOURS", []),
        ("SELECT overlay(name PLACING '_' FROM 6), trim(BOTH 'x' FROM name), position('a' IN name) FROM a.t", []),
        ("SELECT id FROM a.t UNION ALL SELECT id FROM source ORDER BY id", []),
        ("SELECT n.q FROM a.t ORDER BY q", []),
        ("SELECT n.* FROM a.t ORDER BY q", []),
        ("SELECT q FROM (SELECT id, n.* FROM a.t)", []),
        ("SELECT explode(n) AS (k, v) FROM a.t ORDER BY k", []),
        ("SELECT explode(n) FROM a.t ORDER BY key", []),
        ("SELECT id, count(*) FROM a.t GROUP BY id ORDER BY `count(1)`", []),
        ("SELECT * FROM (SELECT id, ts FROM source) PIVOT (sum(id) FOR ts IN ('x' AS xx)) WHERE xx > 1", []),
        ("SELECT * FROM (SELECT id, ts FROM source) UNPIVOT (v FOR k IN (id, ts)) WHERE v = 1 AND k = 'x'", []),
        ("SELECT item.sku FROM a.t LATERAL VIEW explode(xs) AS item", []),
        ("WITH p AS (SELECT from_json(name, 'q INT') AS p FROM a.t) SELECT p.q FROM p", []),
        ("SELECT window, count(1) FROM a.t GROUP BY window(ts, '1 day')", []),
        ("SELECT o.id, o.contry FROM a.t o JOIN a.unknown USING (town)", ["contry"]),
        ("SELECT id, upper(name) FROM a.t WHERE iid = 1", ["iid"]),
        # Spark decides the cases that the text leaves open.
        ("SELECT * FROM a.t JOIN a.u USING (id) WHERE zzz = 1", []),
        ("SELECT * FROM a.t LATERAL VIEW explode(xs) e AS item WHERE item > 2", []),
        ("SELECT * FROM a.t PIVOT (sum(id) FOR name IN ('x', 'y')) WHERE x > 1", []),
        ("SELECT t1.id FROM a.t t1, LATERAL (SELECT t1.name AS nm FROM source) l WHERE nm = 'x'", []),
        ("not a query (", []),
    ],
)  # fmt: skip
def test_unknown_columns(query: str, unknown: list[str]) -> None:
    assert unknown_columns(query, TABLES) == unknown


@pytest.mark.parametrize(
    ("query", "returned"),
    [
        ("SELECT *, to_date(ts) AS day FROM source", ["id", "amount", "ts", "day"]),
        ("SELECT s.*, 1 AS one FROM source s JOIN a.unknown u", ["id", "amount", "ts", "one"]),
        ("WITH w AS (SELECT id AS k FROM source) SELECT * FROM w UNION ALL SELECT 1", ["k"]),
        ("SELECT Id, amount AS `the amount` FROM source", ["Id", "the amount"]),
        ("SELECT * EXCEPT (id) FROM source", None),
        ("SELECT ts.* FROM source", None),
        ("SELECT * FROM (SELECT id, ts FROM source) PIVOT (sum(id) FOR ts IN ('x' AS xx))", None),
        ("SELECT id, amount + 1 FROM source", None),
        ("SELECT count(*) FROM source", None),
        ("SELECT * FROM a.unknown", None),
        ("SELECT *, item FROM source LATERAL VIEW explode(xs) e AS item", None),
        ("not a query (", None),
    ],
)
def test_returned_columns(query: str, returned: list[str] | None) -> None:
    assert returned_columns(query, TABLES) == returned
