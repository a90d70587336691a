"""Decide if rows of a run may be older than those on main."""

from collections.abc import Collection

from sluice.contracts.load_order import LoadOrder
from sluice.pipeline.loading_rules import rule_of
from sluice.pipeline.write import Write


def may_be_older(order: LoadOrder, write: Write, tables: Collection[str]) -> bool:
    """Return True if a run must first search main for loads that its rows may be older than.

    Args:
        tables: the tables of the pipeline.
    """
    if order.over_younger:
        return False
    is_partition = bool(order.partition) and rule_of("by hand", write, tables).guard == "later partition"
    return bool(order.runs or order.files_of_runs) or is_partition
