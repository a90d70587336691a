"""What a catalog can do, and which pipelines it therefore cannot publish."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sluice.errors import InvalidPipeline


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
    own_table_properties: tuple[str, ...] = ()
    """The beginnings of table properties that the catalog writes for itself."""


def missing_capabilities(
    capabilities: CatalogCapabilities,
    tables: Collection[str],
    new_tables: Collection[str],
    *,
    attempts: int = 1,
) -> list[str]:
    """Return what a pipeline needs of the catalog and does not get, one sentence each.

    Args:
        tables: every table that the run may change, quarantine tables included.
        new_tables: those of them that main does not have.
        attempts: how often the write may be tried.
    """
    problems = []
    if not capabilities.commit_properties:
        problems.append(
            "the catalog keeps no properties on commits, and every pipeline needs them: a repeated input, "
            "a quarantine, an orphan branch and a run to roll back are recognised by them"
        )
    if len(tables) > 1 and not capabilities.many_tables:
        problems.append(
            f"the catalog cannot publish {len(tables)} tables at once ({', '.join(sorted(tables))}): "
            "write a pipeline for each table"
        )
    if new_tables and not capabilities.new_tables:
        problems.append(
            f"the catalog cannot create a table on a branch ({', '.join(sorted(new_tables))}): create it on main first"
        )
    if attempts > 1 and not capabilities.fencing_by_deletion:
        problems.append("the catalog cannot fence a lost attempt by deleting its branch: set `attempts: 1`")
    return problems


def require_capabilities(capabilities: CatalogCapabilities, tables: Collection[str]) -> None:
    """Make sure that the catalog can do what every pipeline needs, and can publish these tables at once.

    Raises:
        InvalidPipeline: it cannot.
    """
    if problems := missing_capabilities(capabilities, tables, ()):
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
    repeat = f"a repeated publish is recognised by a {capabilities.repeated_publish}"
    return "; ".join([*answers, repeat, f"a commit takes at most {capabilities.commit_timeout:g} s"])
