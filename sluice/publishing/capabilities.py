"""Capabilities of a catalog, and the pipelines that it therefore cannot publish."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sluice.errors import InvalidPipeline

Guarantee = Literal["atomic", "checked", "one by one"]
"""Guarantee of a catalog for a commit to several tables.

`atomic`: all or none, also after a crash. `checked`: one request for all; after a crash, Sluice inspects every table
and completes or reverts a partial commit. `one by one`: the same, with one request for each table.
"""


@dataclass(frozen=True)
class CatalogCapabilities:
    """Capabilities that a catalog declares. A pipeline that needs more is refused before Spark starts."""

    many_tables: bool
    """True if one publish can change many tables, all or none of them."""
    new_tables: bool
    """True if a branch can contain a table that main does not have."""
    fencing_by_deletion: bool
    """True if every commit to a branch fails once the branch is deleted."""
    main_permissions: bool
    """True if the server can forbid writers to change main."""
    commit_properties: bool
    """True if a commit carries properties and can be found by their values. Every pipeline needs this capability."""
    repeated_publish: Literal["merge parent", "commit property"]
    """Sign of a repeated publish: the published hash as a parent of the merge, or a property of the merge."""
    commit_timeout: float
    """Maximum time that the server works on a commit, in seconds. After it, a commit in flight is decided."""
    tables_without_snapshot: bool = True
    """True if a table on a branch exists without a snapshot; else it counts as missing until it has one."""
    names_with_dots: bool = True
    """True if a namespace or a table may have a dot in its own name."""
    guarantee: Guarantee = "atomic"
    """Guarantee for a publish of several tables if a server crashes in the middle of it."""
    merges_into_branches: bool = True
    """True if a run can publish to a branch other than main, as `backfill --publish together` requires."""
    own_table_properties: tuple[str, ...] = ()
    """Prefixes of table properties that the catalog itself writes."""


def missing_capabilities(
    capabilities: CatalogCapabilities,
    tables: Collection[str],
    new_tables: Collection[str],
    *,
    attempts: int = 1,
    allow_partial: bool = False,
) -> list[str]:
    """Return the capabilities that a pipeline needs and the catalog lacks, one sentence each.

    Args:
        tables: every table that the run may change, including quarantine tables.
        new_tables: those of these tables that main does not have.
        attempts: maximum number of attempts of the write.
        allow_partial: True if several tables may be published one by one, so that a crash may leave only some of them.
    """
    problems = []
    if not capabilities.commit_properties:
        problems.append(
            "the catalog does not store properties of commits, and every pipeline needs them: Sluice uses them to find "
            "repeated inputs, quarantines, orphan branches and runs to roll back"
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
    """Return the guarantee for a publish of these tables. A single table is atomic in every catalog."""
    return capabilities.guarantee if len(tables) > 1 else "atomic"


def require_capabilities(
    capabilities: CatalogCapabilities, tables: Collection[str], *, allow_partial: bool = False
) -> None:
    """Check that the catalog has the capabilities that every pipeline needs and can publish these tables at once.

    Raises:
        InvalidPipeline: the catalog lacks a capability.
    """
    if problems := missing_capabilities(capabilities, tables, (), allow_partial=allow_partial):
        raise InvalidPipeline("\n".join(problems))


def describe_capabilities(capabilities: CatalogCapabilities) -> str:
    """Return the capabilities of a catalog in one line, for the log of a worker."""
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
