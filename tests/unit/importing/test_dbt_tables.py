"""Importing from dbt: sources and their age, constraints and contracts, and versions of models."""

from importing.drafts import sql_check
from importing.imported import SourceText
from importing.project import Files, ImportOptions, import_files
from tests.harness.imported_dbt import imported, reasons

SOURCES = """
sources:
  - name: raw
    schema: "{{ var('schema', 'lake_raw') }}"
    loaded_at_field: loaded_at
    freshness: {warn_after: {count: 12, period: hour}, error_after: {count: 2, period: day}}
    tables:
      - name: orders
        columns: [{name: id, tests: [unique]}]
      - name: clicks
        identifier: clicks_v2
        freshness: {error_after: {count: 1, period: week}, filter: day > 1}
      - name: static
        freshness: null
  - name: other
    tables:
      - {name: things, freshness: {error_after: {count: 1, period: day}}}
"""


def test_sources_are_tables_of_their_schema_and_have_an_age() -> None:
    result = imported(SOURCES)
    assert list(result.checks) == ["lake_raw.orders", "lake_raw.clicks_v2"]
    assert result.checks["lake_raw.orders"] == [
        {"unique": {"column": "id", "scope": "table"}},
        {"freshness": {"column": "loaded_at", "max_age": "172800s", "scope": "table"}},
        {"freshness": {"column": "loaded_at", "max_age": "43200s", "severity": "warn", "scope": "table"}},
    ]
    assert "WHERE day > 1" in result.checks["lake_raw.clicks_v2"][0]["sql"]["query"]
    assert "INTERVAL '1' WEEK" in result.checks["lake_raw.clicks_v2"][0]["sql"]["query"]
    assert reasons(result) == [
        "17: other.things: freshness (error_after): there is no `loaded_at_field`: dbt asks the warehouse when the "
        "table was loaded"
    ]


def test_constraints_and_an_enforced_contract() -> None:
    result = imported(
        """
models:
  - name: orders
    config: {contract: {enforced: true}}
    constraints:
      - {type: primary_key, columns: [id, day]}
      - {type: check, expression: "amount > 0"}
      - {type: foreign_key, columns: [day], to: ref('days'), to_columns: [day]}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: day, data_type: date}
      - {name: amount, data_type: "numeric(10,2)"}
"""
    )
    assert not result.left
    checks = result.checks["shop.orders"]
    assert {"not_null": {"column": "id", "scope": "table"}} in checks
    assert {"unique_combination_of_columns": {"columns": ["id", "day"], "scope": "table"}} in checks
    assert {"expression_is_true": {"expression": "coalesce((amount > 0), TRUE)", "scope": "table"}} in checks
    assert {"relationships": {"column": "day", "to": "shop.days", "field": "day", "scope": "table"}} in checks
    assert checks[-4:] == [
        {"column_names": {"columns": ["id", "day", "amount"]}},
        {"column_type": {"column": "id", "type": "long"}},
        {"column_type": {"column": "day", "type": "date"}},
        {"column_type": {"column": "amount", "type": "decimal(10,2)"}},
    ]


def test_versions_are_tables_of_their_own_and_a_reference_means_the_latest() -> None:
    result = imported(
        """
models:
  - name: orders
    latest_version: 2
    columns: [{name: id, tests: [unique]}, {name: note, tests: [not_null]}]
    versions:
      - v: 1
      - v: 2
        columns: [{include: all, exclude: [note]}, {name: total, tests: [not_null]}]
      - {v: 3, config: {alias: orders_next}}
  - name: lines
    columns:
      - {name: a, tests: [{relationships: {to: ref('orders'), field: id}}]}
      - {name: b, tests: [{relationships: {to: "ref('orders', v=3)", field: id}}]}
"""
    )
    assert list(result.checks) == ["shop.orders_v1", "shop.orders_v2", "shop.orders_next", "shop.lines"]
    assert [next(iter(check)) for check in result.checks["shop.orders_v1"]] == ["unique", "not_null"]
    assert [next(iter(check.values()))["column"] for check in result.checks["shop.orders_v2"]] == ["id", "total"]
    assert [check["relationships"]["to"] for check in result.checks["shop.lines"]] == [
        "shop.orders_v2",
        "shop.orders_next",
    ]


DISABLED = """
models:
  - name: dormant
    config: {enabled: false, contract: {enforced: true}}
    constraints: [{type: not_null, columns: [a]}]
    columns: [{name: a, tests: [unique]}]
  - name: versioned
    config: {contract: {enforced: true}}
    columns: [{name: a, tests: [unique]}]
    versions: [{v: 1, config: {enabled: false}}, {v: 2, config: {alias: two}}]
  - name: unknown
    config: {enabled: "{{ target.name == 'prod' }}"}
    columns: [{name: a, tests: [unique]}]
sources:
  - name: raw
    config: {enabled: false}
    loaded_at_field: at
    freshness: {error_after: {count: 1, period: day}}
    tables:
      - {name: a, columns: [{name: a, tests: [unique]}]}
      - {name: b, config: {enabled: true}}
"""


def test_nothing_of_a_model_or_source_that_is_not_enabled_is_imported() -> None:
    result = imported(DISABLED)
    assert [(table, [next(iter(each)) for each in checks]) for table, checks in result.checks.items()] == [
        ("shop.two", ["unique", "column_names"]),
        ("raw.b", ["freshness"]),
    ]
    assert [each.test for each in result.left if each.inactive] == [
        *("shop.dormant.a: unique", "shop.dormant: constraint not_null", "shop.dormant: contract"),
        *("shop.versioned_v1.a: unique", "shop.versioned_v1: contract"),
        *("raw.a.a: unique", "raw.a: freshness (error_after)"),
    ]
    assert [each.test for each in result.left if not each.inactive] == ["shop.unknown.a: unique"]


def test_a_source_without_rows_is_not_fresh() -> None:
    (check,) = imported(
        "sources: [{name: raw, tables: [{name: a, loaded_at_field: lower(at), "
        "freshness: {error_after: {count: 1, period: day}}}]}]"
    ).checks["raw.a"]
    assert "WHERE NOT (coalesce(observed >= " in check["sql"]["query"]


def test_a_table_of_a_schema_that_is_not_known_is_not_taken_for_another() -> None:
    result = imported(
        """
sources:
  - name: raw
    schema: "{{ env_var('SCHEMA') }}"
    tables: [{name: a, columns: [{name: a, tests: [unique]}]}]
models:
  - name: o
    columns: [{name: a, tests: [{relationships: {to: "source('raw', 'a')", field: a}}]}]
"""
    )
    assert not result.checks
    unknown = "its table is not known: the environment variable 'SCHEMA' has no default"
    assert [each.reason.removeprefix("it refers to another table: ") for each in result.left] == [unknown] * 2


def test_checks_that_python_takes_for_equal_are_all_kept() -> None:
    values = "[{accepted_values: {values: [0, 1]}}, {accepted_values: {values: [false, true]}}]"
    checks = imported(f"models: [{{name: o, columns: [{{name: a, tests: {values}}}]}}]").checks["shop.o"]
    assert [repr(each["accepted_values"]["values"]) for each in checks] == ["[0, 1]", "[False, True]"]


PROJECT = """
name: p
models: {p: {old: {+enabled: false, back: {+enabled: "{{ 1 == 1 }}"}}, single: {enabled: false}}}
sources: {p: {raw: {b: {+enabled: false}}}}
seeds: {+enabled: false}
"""
OF_PROJECT = """
models:
  - {name: a, columns: [{name: i, tests: [unique]}]}
  - {name: single, constraints: [{type: not_null, columns: [i]}]}
  - {name: stated, config: {enabled: true}, columns: [{name: i, tests: [unique]}]}
  - {name: back, columns: [{name: i, tests: [unique]}]}
seeds: [{name: s, columns: [{name: i, tests: [unique]}]}]
sources:
  - name: raw
    tables:
      - {name: a, columns: [{name: i, tests: [unique]}]}
      - {name: b, columns: [{name: i, tests: [unique]}]}
"""


def test_what_the_project_disables_is_not_active_unless_the_file_of_the_table_states_otherwise() -> None:
    """The folder of the model counts, not the folder of the file that describes it."""
    paths = ("models/old/a.sql", "models/old/stated.sql", "models/old/back/back.sql", "models/single.sql")
    files = Files(
        dbt=[SourceText("models/all.yml", OF_PROJECT)],
        projects=[SourceText("dbt_project.yml", PROJECT)],
        others=[SourceText(path, "select 1") for path in paths],
    )
    result = import_files(files, ImportOptions(namespace="shop"))
    assert list(result.checks) == ["shop.stated", "shop.back", "raw.a"]
    assert [each.test.partition(":")[0] for each in result.left if each.inactive] == [
        "shop.a.i", "shop.single", "shop.s.i", "raw.b.i",
    ]  # fmt: skip
    files = Files(dbt=[SourceText("models/old/all.yml", OF_PROJECT)], projects=files.projects)
    assert list(import_files(files, ImportOptions(namespace="shop")).checks) == [
        "shop.stated",
        "shop.back",
        "raw.a",
        "raw.b",
    ]


def test_a_type_of_a_contract_that_is_not_known_is_listed() -> None:
    result = imported(
        """
models:
  - name: o
    config: {contract: {enforced: true}}
    columns:
      - {name: a, data_type: bigint}
      - {name: b,
         data_type: geography}
"""
    )
    assert [next(iter(each)) for each in result.checks["shop.o"]] == ["column_names", "column_type"]
    assert reasons(result) == ["8: shop.o: contract type(b): geography is not a type that Iceberg has"]


def test_every_query_has_a_name() -> None:
    assert sql_check("SELECT 1", " ")["sql"]["name"] == "failed rows"
