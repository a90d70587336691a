"""The one table of loading: a rule for every way of starting a run with every kind of write.

A rule states if the combination is allowed, the order of its runs, and the input that counts as loaded already.
`check`, `plan`, `deploy`, `backfill`, every start and the worker use this table, and `docs/order.md` is generated from
it (ADR 46).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

from sluice.command_line import OVER_YOUNGER
from sluice.errors import InvalidPipeline
from sluice.pipeline.write import Write
from sluice.pipeline.write_modes import PROGRAM, WRITE_MODES, Mode, WriteMode
from sluice.sql.expression import tables_of

Way = Literal[
    "by hand", "schedule", "arrival", "backfill each", "backfill together", "requeue", "release", "retry", "repair"
]
"""Ways of starting a run. `retry` is the retry of a batch of a landing zone."""
Kind = Mode | Literal["program"]
"""Kinds of write: a write mode, or a program of the user's."""
Order = Literal["any", "one at a time"]
Guard = Literal["", "later partition", "other partition", "later run", "other content", "later batch", "changed table"]
"""Guards against older rows that would replace younger ones, each a condition on main."""
GUARDS: Mapping[Guard, str] = {
    "": "",
    "later partition": f"refused without `{OVER_YOUNGER}` if main contains a later partition of the pipeline",
    "other partition": "stopped if it would remove rows of another partition, or (without "
    f"`{OVER_YOUNGER}`) of a later scheduled time",
    "later run": f"refused without `{OVER_YOUNGER}` if a later run changed the table",
    "other content": f"refused without `{OVER_YOUNGER}` if the rows' file was loaded later with other content, or the "
    "table is new",
    "later batch": f"refused without `{OVER_YOUNGER}` if a later batch was loaded",
    "changed table": "refused if main changed one of its tables since the write",
}
Loaded = Literal["", "nothing", "files", "set of files", "statements", "program", "partition", "rows"]
LOADED: Mapping[Loaded, str] = {
    "": "",
    "nothing": "the same load may run again at any time",
    "files": "each file that main contains is left out; a run without other files is skipped",
    "set of files": "the same set of files is skipped until a later load replaced its rows",
    "statements": "the same statements with the same values of placeholders are skipped",
    "program": "the same program with the same arguments and values of placeholders is skipped",
    "partition": "a partition that main contains is skipped",
    "rows": "rows that a run published are refused, and so are rows of files that main contains",
}
"""For each kind of input, the rule for input that counts as loaded already. `--again` loads it all the same."""
TRAITS: Mapping[Kind, WriteMode] = {
    **{mode: traits for mode, traits in WRITE_MODES.items() if traits.is_for_pipelines},
    "program": PROGRAM,
}
"""Traits of each kind of write that a pipeline may have."""


@dataclass(frozen=True)
class Rule:
    """One cell of the table."""

    order: Order = "any"
    guard: Guard = ""
    refused: str = ""
    """Reason why the combination is refused, with an alternative; empty if it is allowed."""
    loaded: Loaded = ""
    """The input that counts as loaded already."""


def name_of(kind: Kind) -> str:
    """Return the name of a kind of write in messages."""
    return "a program of yours" if kind == "program" else f"`mode: {kind}`"


def kind_of(write: Write) -> Kind:
    """Return the kind of a write."""
    return write.mode if write.built_in else "program"


def traits_of(write: Write, tables: Collection[str]) -> WriteMode:
    """Return the traits of a write: those of its mode, with the `order_matters` of this write.

    If its files may be added to any newer main, loads come in any order. If its transform reads its own table, they
    come one at a time.

    Args:
        tables: the tables of the pipeline.
    """
    traits = TRAITS.get(kind_of(write), write.traits)
    own = {name.casefold() for name in tables}
    read = tables_of(write.transform) if write.transform else []
    reads_itself = any(name.casefold().endswith(table) for name in read for table in own)
    if traits.order_matters and write.rebases:
        return replace(traits, order_matters=False)
    return replace(traits, order_matters=True) if reads_itself else traits


def rule_of(way: Way, write: Write, tables: Collection[str]) -> Rule:
    """Return the rule for a way of starting a run of a pipeline.

    Args:
        tables: the tables of the pipeline.
    """
    return make_rule(way, kind_of(write), traits_of(write, tables))


def require_allowed(way: Way, write: Write, tables: Collection[str]) -> Rule:
    """Return the rule for a way of starting a run of a pipeline, if it allows the start.

    Raises:
        InvalidPipeline: the rule refuses it.
    """
    rule = rule_of(way, write, tables)
    if rule.refused:
        raise InvalidPipeline(rule.refused)
    return rule


def make_rule(way: Way, kind: Kind, traits: WriteMode) -> Rule:
    """Return the rule for a way of starting a run, from the traits of its write."""
    return _RULES[way](kind, traits)


def table() -> dict[tuple[Way, Kind], Rule]:
    """Return the rules of all combinations."""
    ways: tuple[Way, ...] = get_args(Way)
    return {(way, kind): make_rule(way, kind, traits) for way, (kind, traits) in product(ways, TRAITS.items())}


def is_known_as_a_whole(write: Write) -> bool:
    """Return True if main knows the input of a write only as a whole, and not by its files.

    Only their partitions then show that two of its inputs have rows in common.
    """
    return not write.selects_files and rule_of("by hand", write, ()).loaded in ("statements", "program")


def why_in_order(kind: Kind) -> str:
    """Return the reason why loads of a kind run one at a time."""
    return f"with {name_of(kind)}, rows of a later load replace rows of an earlier one"


def _order(traits: WriteMode) -> Order:
    return "one at a time" if traits.order_matters else "any"


def _partition_guard(traits: WriteMode) -> Guard:
    if not traits.order_matters:
        return ""
    return "other partition" if traits.replaces_partitions else "later partition"


def _by_hand(kind: Kind, traits: WriteMode) -> Rule:
    return Rule(guard=_partition_guard(traits), loaded=_loaded(kind, traits))


def _schedule(kind: Kind, traits: WriteMode) -> Rule:
    return Rule(_order(traits), _partition_guard(traits), loaded=_loaded(kind, traits))


def _arrival(kind: Kind, traits: WriteMode) -> Rule:
    if "source" not in traits.required:
        return Rule(
            refused=f"a landing zone loads files, and {name_of(kind)} does not load the files of a batch: use append "
            "or merge"
        )
    return Rule(_order(traits), loaded="files")


def _backfill_each(kind: Kind, traits: WriteMode) -> Rule:
    if traits.replaces_table:
        return Rule(
            refused=f"a backfill with {name_of(kind)} would leave only the rows of its last partition, since each "
            "partition replaces the whole table: use overwrite_partitions, or append"
        )
    order: Order = "any" if traits.replaces_partitions else _order(traits)
    return Rule(order, _partition_guard(traits), loaded="nothing" if traits.may_repeat else "partition")


def _backfill_together(kind: Kind, traits: WriteMode) -> Rule:
    if "source" not in traits.required:
        return Rule(
            refused=f"`--publish together` needs a record on main of each loaded file, and {name_of(kind)} leaves no "
            "such record: publish the partitions one by one"
        )
    return _backfill_each(kind, traits)


def _requeue(kind: Kind, traits: WriteMode) -> Rule:
    if not traits.knows_its_rows:
        return Rule(
            refused=f"{name_of(kind)} does not quarantine single rows, so it has nothing to requeue: correct the "
            "source and run the pipeline again"
        )
    if traits.replaces_rows:
        return Rule(
            refused=f"with {name_of(kind)} each load replaces rows of the one before, so requeued rows would be "
            "older than those of the table: correct the source and run the pipeline again"
        )
    return Rule(guard="later run" if traits.order_matters else "other content", loaded="rows")


def _release(kind: Kind, traits: WriteMode) -> Rule:
    guard: Guard = "" if traits.can_be_rebased and not traits.order_matters else "changed table"
    return Rule(guard=guard, loaded="rows")


def _retry(kind: Kind, traits: WriteMode) -> Rule:
    rule = _arrival(kind, traits)
    return rule if rule.refused or not traits.order_matters else replace(rule, guard="later batch")


def _loaded(kind: Kind, traits: WriteMode) -> Loaded:
    if traits.may_repeat:
        return "nothing"
    if kind == "program":
        return "program"
    if "source" not in traits.required:
        return "statements"
    return "files" if traits.loaded == "skip" else "set of files"


_RULES: Mapping[Way, Callable[[Kind, WriteMode], Rule]] = {
    "by hand": _by_hand,
    "schedule": _schedule,
    "arrival": _arrival,
    "backfill each": _backfill_each,
    "backfill together": _backfill_together,
    "requeue": _requeue,
    "release": _release,
    "retry": _retry,
    "repair": _release,
}
