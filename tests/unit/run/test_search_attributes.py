"""The search attributes of runs stay within what Temporal accepts."""

import json

from workflows.search_attributes import indexed_tables


def test_few_tables_are_all_indexed() -> None:
    assert indexed_tables(["shop.orders", "shop.customers"]) == ["shop.orders", "shop.customers"]


def test_many_tables_are_indexed_as_far_as_the_server_accepts() -> None:
    tables = [f"warehouse.table_with_quite_a_long_name_{number:04}" for number in range(500)]
    indexed = indexed_tables(tables)
    assert indexed == tables[: len(indexed)]
    assert 1_500 < len(json.dumps(indexed)) <= 2_048
