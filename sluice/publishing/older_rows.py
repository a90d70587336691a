"""Decide whether rows of a run may be older than what main holds."""

from collections.abc import Collection

from sluice.contracts.load_order import LoadOrder
from sluice.pipeline.loading_rules import rule_of
from sluice.pipeline.write import Write


def may_be_older(order: LoadOrder, write: Write, tables: Collection[str]) -> bool:
    """Return whether main has to be asked for younger rows before those of a run are written.

    Args:
        tables: those of the pipeline.
    """
    if order.over_younger:
        return False
    is_partition = bool(order.partition) and rule_of("by hand", write, tables).guard == "later partition"
    return bool(order.runs) or is_partition
