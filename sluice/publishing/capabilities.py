"""What a catalog can do, and which pipelines it therefore cannot publish."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sluice.errors import InvalidPipeline

Guarantee = Literal["atomic", "checked", "one by one"]
"""What a catalog guarantees of a commit to several tables.

`atomic`: all or none, also after a crash. `checked`: one request for all; after a crash every table is looked at, and a
half is finished or taken back. `one by one`: the same, by a request for each table.
"""


@dataclass(frozen=True)
class CatalogCapabilities:
    """What a catalog declares of itself. A pipeline that needs more is refused before Spark starts."""

    many_tables: bool
    """Whether one publish changes many tables, all of them or none."""
    new_tables: bool
    """Whether a branch can hold a table that main does not have."""
    fencing_by_deletion: bool
    """Whether every commit to a branch fails once the branch is deleted."""
    main_permissions: bool
    """Whether the server can forbid writers to change main."""
    commit_properties: bool
    """Whether a commit carries properties, which can be found by their values. Every pipeline needs that."""
    repeated_publish: Literal["merge parent", "commit property"]
    """How a repeated publish is recognised: by the published hash as a parent of the merge, or by a property of it."""
    commit_timeout: float
    """How long, in seconds, the server works on a commit at most. After that, a commit in flight is decided."""
    tables_without_snapshot: bool = True
    """Whether a table without a snapshot is a table of a branch; else it counts as missing until it has one."""
    names_with_dots: bool = True
    """Whether a namespace or a table may have a dot in its own name."""
    guarantee: Guarantee = "atomic"
    """What holds of a publish of several tables when a server crashes in its middle."""
    merges_into_branches: bool = True
    """Whether a run can publish to another branch than main, as `backfill --publish together` needs it."""
    own_table_properties: tuple[str, ...] = ()
    """The beginnings of table properties that the catalog writes for itself."""


def missing_capabilities(
    capabilities: CatalogCapabilities,
    tables: Collection[str],
    new_tables: Collection[str],
    *,
    attempts: int = 1,
    allow_partial: bool = False,
) -> list[str]:
    """Return what a pipeline needs of the catalog and does not get, one sentence each.

    Args:
        tables: every table that the run may change, quarantine tables included.
        new_tables: those of them that main does not have.
        attempts: how often the write may be tried.
        allow_partial: whether several tables may be published one by one, so that a crash leaves some of them.
    """
    problems = []
    if not capabilities.commit_properties:
        problems.append(
            "the catalog keeps no properties on commits, and every pipeline needs them: a repeated input, "
            "a quarantine, an orphan branch and a run to roll back are recognised by them"
        )
    if len(tables) > 1 and not (capabilities.many_tables or allow_partial):
        problems.append(
            f"the catalog cannot publish {len(tables)} tables at once ({', '.join(sorted(tables))}): "
            "write a pipeline for each table, or let readers see some of the tables before the others, "
            "by `publish: {allow_partial: true}`, or for a roll-back by `--allow-partial`"
        )
    if new_tables and not capabilities.new_tables:
        problems.append(
            f"the catalog cannot create a table on a branch ({', '.join(sorted(new_tables))}): create it on main first"
        )
    if attempts > 1 and not capabilities.fencing_by_deletion:
        problems.append("the catalog cannot fence a lost attempt by deleting its branch: set `attempts: 1`")
    return problems


def guarantee_for(capabilities: CatalogCapabilities, tables: Collection[str]) -> Guarantee:
    """Return what holds of a publish of these tables: one table is published as one in every catalog."""
    return capabilities.guarantee if len(tables) > 1 else "atomic"


def require_capabilities(
    capabilities: CatalogCapabilities, tables: Collection[str], *, allow_partial: bool = False
) -> None:
    """Make sure that the catalog can do what every pipeline needs, and can publish these tables at once.

    Raises:
        InvalidPipeline: it cannot.
    """
    if problems := missing_capabilities(capabilities, tables, (), allow_partial=allow_partial):
        raise InvalidPipeline("\n".join(problems))


def describe_capabilities(capabilities: CatalogCapabilities) -> str:
    """Return in one line what a catalog can do and what it cannot, for the log of a worker."""
    abilities = {
        "publish many tables at once": capabilities.many_tables,
        "create tables on branches": capabilities.new_tables,
        "fence by deleting a branch": capabilities.fencing_by_deletion,
        "forbid writers to change main": capabilities.main_permissions,
        "keep properties on commits": capabilities.commit_properties,
    }
    answers = [f"{ability}: {'yes' if able else 'no'}" for ability, able in abilities.items()]
    several = f"a publish of several tables is {capabilities.guarantee}"
    repeat = f"a repeated publish is recognised by a {capabilities.repeated_publish}"
    return "; ".join([*answers, several, repeat, f"a commit takes at most {capabilities.commit_timeout:g} s"])
