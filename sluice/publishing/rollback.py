"""What a roll-back restores: which tables, to which hash of main, and by which checks they are audited."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sluice.contracts.rollback import PublishedChecks
from sluice.contracts.write import TableChange
from sluice.errors import InvalidInput, InvalidPipeline, UnexpectedWrite
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.bad_rows import is_quarantine_table


@dataclass(frozen=True)
class PublishedCommit:
    """One commit on main, and the run that it published."""

    hash: str
    parent: str
    """Main before it."""
    run_id: str
    workflow_id: str
    tables: frozenset[str] = frozenset()
    """The tables that it changed."""
    pipeline: str = ""
    referenced: frozenset[str] = frozenset()
    """The tables that the run's checks read."""
    rolled_back: tuple[str, ...] = ()
    """The ids of the runs that it took back, if it is a roll-back."""
    released_run: str = ""
    """The id of the quarantined run that it published, if it is a release."""
    committed_at: str = ""
    """When it was made, in ISO 8601."""


@dataclass(frozen=True)
class RollbackPlan:
    """Which runs a roll-back undoes, and what it restores."""

    runs: list[str]
    """The ids of the runs that are rolled back, the newest first."""
    tables: dict[str, str]
    """By table, the hash of main that holds it as it is to be."""
    readers: list[str]
    """The later runs whose checks read one of these tables, and which stay, each as a sentence."""


def runs_taken_back(commits: Iterable[PublishedCommit]) -> dict[str, PublishedCommit]:
    """Return the runs that main does not hold any more, each with the roll-back that took it back.

    A roll-back that was taken back itself counts no more: main holds its runs again.

    Args:
        commits: the commits on main, the newest first, at least back to the runs' own.
    """
    taken: dict[str, PublishedCommit] = {}
    for commit in commits:
        if commit.run_id not in taken:
            for run_id in commit.rolled_back:
                taken.setdefault(run_id, commit)
    return taken


def plan_rollback(
    history: Sequence[PublishedCommit], run_id: str, *, with_later: bool, despite_readers: bool = False
) -> RollbackPlan:
    """Plan the roll-back of a published run.

    Each table of the run is restored to its version before the run. A later run that changed one of them built on it,
    and is rolled back too, with all its tables, since a run is published whole or not at all; and so on.

    Args:
        history: the commits on main, the newest first, at least back to the run's.
        despite_readers: whether to plan it although later runs read what it takes back.

    Raises:
        InvalidPipeline: the run is not on main; or later runs built on it and `with_later` is not set, or read it by
            their checks and `despite_readers` is not.
    """
    index = next((index for index, each in enumerate(history) if each.run_id == run_id), None)
    if index is None:
        raise InvalidPipeline(f"main has no commit of run {run_id}")
    target = history[index]
    tables = dict.fromkeys(sorted(target.tables), target.parent)
    later: list[PublishedCommit] = []
    for each in reversed(history[:index]):
        if each.tables & tables.keys():
            later.append(each)
            for table in sorted(each.tables):
                tables.setdefault(table, each.parent)
    if later and not with_later:
        named = ", ".join(f"{each.workflow_id or each.hash[:12]} ({', '.join(sorted(each.tables))})" for each in later)
        raise InvalidPipeline(f"later runs built on it: {named}. To roll them back too, add --with-later")
    runs = [each.run_id for each in reversed(later)] + [run_id]
    readers = _readers(history[:index], set(tables), set(runs))
    if readers and not despite_readers:
        raise InvalidPipeline(
            f"the checks of later runs read what this takes back: {'; '.join(readers)}. They are not rolled back, and "
            "may not hold any more. To roll back anyway, add --despite-readers"
        )
    return RollbackPlan(runs, tables, readers)


def _readers(later: Sequence[PublishedCommit], tables: set[str], runs: set[str]) -> list[str]:
    """Return, by pipeline, the later runs that stay and whose checks read one of these tables."""
    taken = runs_taken_back(later)
    by_pipeline: dict[str, list[PublishedCommit]] = {}
    for each in later:
        if each.referenced & tables and each.run_id not in runs and each.run_id not in taken:
            by_pipeline.setdefault(each.pipeline or each.run_id, []).append(each)
    return [_describe_readers(pipeline, commits, tables) for pipeline, commits in by_pipeline.items()]


def _describe_readers(pipeline: str, commits: Sequence[PublishedCommit], tables: set[str]) -> str:
    written = sorted({table for each in commits for table in each.tables})
    read = sorted({table for each in commits for table in each.referenced & tables})
    more = f" and {len(commits) - 1} more" if len(commits) > 1 else ""
    return (
        f"{', '.join(written) or 'a table'} of {pipeline} ({commits[0].workflow_id}{more}) was checked against "
        f"{', '.join(read)}"
    )


def check_unchanged_since_plan(table: str, unchanged: bool) -> None:
    """Make sure that main holds a table as it did when the roll-back was planned.

    Raises:
        InvalidInput: it does not.
    """
    if not unchanged:
        raise InvalidInput(f"main changed {table} since this roll-back was planned: look again")


def check_restored(expected: Mapping[str, object], held: Mapping[str, object]) -> None:
    """Make sure that the branch of a roll-back holds exactly the versions that it restores.

    Args:
        expected: by table, the version to restore; None for a table that is dropped.
        held: by table that differs from main, the version that the branch holds.

    Raises:
        UnexpectedWrite: it holds something else.
    """
    for table in sorted({*expected, *held}):
        if table not in held or table not in expected or held[table] != expected[table]:
            raise UnexpectedWrite(f"the branch of the roll-back does not hold {table} as it is to be restored")


def check_files_exist(table: str, missing: Sequence[str]) -> None:
    """Make sure that the files of a restored table are there: a clean-up may have deleted them since.

    Raises:
        InvalidInput: they are not.
    """
    if missing:
        raise InvalidInput(
            f"{table} cannot be restored: {len(missing)} of its files are gone, as {missing[0]}. A clean-up of "
            "the store, or Iceberg's own expiry of snapshots, deleted them"
        )


def restored_change(rows: int | None, rows_before: int | None) -> TableChange:
    """Return what a roll-back does to a table.

    Args:
        rows: how many rows the table has afterwards; None where the roll-back drops it.
        rows_before: how many it has before; None where it is not there.
    """
    difference = (rows or 0) - (rows_before or 0)
    return TableChange(
        operation="drop" if rows is None else "restore",
        added_rows=max(0, difference),
        deleted_rows=max(0, -difference),
        total_rows=rows,
    )


def rollback_pipeline(
    earlier: Pipeline,
    tables: Collection[str],
    remaining: Collection[str],
    older: Mapping[str, Table] = MappingProxyType({}),
    *,
    allow_partial: bool = False,
) -> Pipeline:
    """Return the pipeline of a roll-back: the checks of whole tables, for the tables that remain after it.

    A restored version is audited by the checks that it was published under: later ones may be about what came later,
    as a number of rows that only a later version has. Of a version that was published without checks, as by a
    compaction, they are the last ones before it.

    Args:
        earlier: the pipeline of the run that is rolled back, for tables without older checks.
        tables: the tables that are restored or dropped.
        older: by table, the checks of the last run up to its restored version that had any.
        allow_partial: whether tables may be published one by one, also where the pipeline does not say so.
    """
    restored = {}
    for name in tables:
        held = {**earlier.tables, **older}
        checks = held[name].checks if name in held and name in remaining else []
        restored[name] = Table(checks=[check for check in checks if check.scope == "table"])
    options = PublishOptions(allow_partial=allow_partial or earlier.publish.allow_partial)
    changes = {"write": Write(job="rollback"), "tables": restored, "publish": options}
    changed = earlier.model_copy(update=changes)
    return Pipeline.model_validate(changed.model_dump(by_alias=True))


def describe_older_checks(older: Mapping[str, PublishedChecks]) -> list[str]:
    """Say of each run by whose checks restored versions are audited which tables these are."""
    tables: dict[str, list[str]] = {}
    for table, published in sorted(older.items()):
        which = "this version" if published.is_of_version else "an earlier version, the last one with any"
        by = f"audited by the checks under which {published.workflow_id} published {which}"
        if published.table.checks:
            tables.setdefault(by, []).append(table)
    return [f"{', '.join(restored)}: {by}" for by, restored in tables.items()]


def tables_without_checks(audit: Pipeline, remaining: Collection[str]) -> list[str]:
    """Return the tables that a roll-back restores and that no check audits; quarantine tables never have any.

    Args:
        audit: the pipeline of the roll-back.
    """
    return [name for name in remaining if not audit.tables[name].checks and not is_quarantine_table(name)]


def describe_missing_checks(tables: Sequence[str], pipeline: str, *, is_given: bool) -> str:
    """Say that a roll-back restores tables without an audit, and what can be done.

    Args:
        pipeline: the name of the pipeline whose run is rolled back.
        is_given: whether a person named the file that has the checks.
    """
    where = "the file of --pipeline" if is_given else "main's history up to this version"
    named = f"name a pipeline by --pipeline FILE: a file of {pipeline} with such checks"
    return (
        f"no checks are known for {', '.join(tables)}: {where} has none of whole tables (`scope: table`), so nothing "
        f"is audited; {named}"
    )


def choose_rollback_pipeline(
    name: str, given: Pipeline | None, recorded: Pipeline | None, earlier: Pipeline | None
) -> Pipeline:
    """Return the pipeline whose checks audit a roll-back.

    Args:
        name: the pipeline of the run that is rolled back.
        given: the one that a person named.
        recorded: the one that the run's commit on main records.
        earlier: the one that Temporal has.

    Raises:
        InvalidPipeline: there is none, or the one that was given is another one.
    """
    pipeline = given or recorded or earlier
    if pipeline is None:
        raise InvalidPipeline(
            f"neither main nor Temporal has the checks of {name or 'this run'}: name its pipeline file by --pipeline"
        )
    if name and pipeline.name != name:
        raise InvalidPipeline(f"the run is of the pipeline {name!r}, not of {pipeline.name!r}")
    return pipeline
