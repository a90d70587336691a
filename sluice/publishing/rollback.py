"""Plan a roll-back: the tables to restore, their versions on main, and the checks that audit them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sluice.contracts.rollback import PublishedChecks
from sluice.contracts.table_changes import TableChange
from sluice.errors import InvalidInput, InvalidPipeline, TableReplaced, UnexpectedWrite
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.quarantine_tables import is_quarantine_table
from sluice.roles import ShowRows, strictest


@dataclass(frozen=True)
class PublishedCommit:
    """One commit on main, and the run that it published."""

    hash: str
    parent: str
    """Hash of main before the commit."""
    run_id: str
    workflow_id: str
    tables: frozenset[str] = frozenset()
    """Tables that the commit changed."""
    pipeline: str = ""
    referenced: frozenset[str] = frozenset()
    """Tables that the run's checks read."""
    rolled_back: tuple[str, ...] = ()
    """Ids of the runs that it took back, if it is a roll-back."""
    released_run: str = ""
    """Id of the quarantined run that it published, if it is a release."""
    loaded_for: str = ""
    """Partition or scheduled time that it loaded, if any."""
    committed_at: str = ""
    """Time of the commit, in ISO 8601."""


@dataclass(frozen=True)
class RollbackPlan:
    """Runs that a roll-back undoes, and tables that it restores."""

    runs: list[str]
    """Ids of the runs that are rolled back, newest first."""
    tables: dict[str, str]
    """By table, the hash of main that has the version to restore."""
    readers: list[str]
    """Later runs that stay and whose checks read one of these tables: a sentence for each of their pipelines."""


def runs_taken_back(commits: Iterable[PublishedCommit]) -> dict[str, PublishedCommit]:
    """Return the runs that main no longer contains, each with the roll-back that took it back.

    A roll-back that was itself rolled back does not count: main contains its runs again.

    Args:
        commits: the commits on main, newest first, at least back to those of the runs.
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
    so it is rolled back too, with all its tables, because a run is published completely or not at all. The same applies
    to runs that built on that one.

    Args:
        history: the commits on main, newest first, at least back to that of the run.
        with_later: True to roll back later runs that built on it, too.
        despite_readers: True to plan the roll-back even if the checks of later runs read the restored tables.

    Raises:
        InvalidPipeline: the run is not on main; later runs built on it and `with_later` is not set; or checks of later
            runs read its tables and `despite_readers` is not set.
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
            f"checks of later runs read the tables that this roll-back changes: {'; '.join(readers)}. Those runs stay, "
            "and their checks may no longer pass. To roll back anyway, add --despite-readers"
        )
    return RollbackPlan(runs, tables, readers)


def _readers(later: Sequence[PublishedCommit], tables: set[str], runs: set[str]) -> list[str]:
    """Describe the later runs that stay and whose checks read one of these tables, by pipeline."""
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


def check_same_tables(replaced: Sequence[str]) -> None:
    """Check that the tables of a roll-back are still those that its runs wrote. The uuid identifies a table.

    Args:
        replaced: the tables that were dropped and created again since.

    Raises:
        TableReplaced: there are some. A roll-back would delete rows of the other program.
    """
    if replaced:
        raise TableReplaced(
            f"{', '.join(replaced)} on main is another table than the one that the run wrote: another program dropped "
            "it and created it again. Its rows went with the old table, so there is nothing to roll back"
        )


def check_unchanged_since_plan(table: str, unchanged: bool) -> None:
    """Check that main did not change a table since the roll-back was planned.

    Raises:
        InvalidInput: main changed it.
    """
    if not unchanged:
        raise InvalidInput(f"main changed {table} since this roll-back was planned: start the roll-back again")


def check_restored(expected: Mapping[str, object], held: Mapping[str, object]) -> None:
    """Check that the branch of a roll-back contains exactly the versions that it restores.

    Args:
        expected: by table, the version to restore; None for a table that is dropped.
        held: by table that differs from main, the version on the branch.

    Raises:
        UnexpectedWrite: the branch contains something else.
    """
    for table in sorted({*expected, *held}):
        if table not in held or table not in expected or held[table] != expected[table]:
            raise UnexpectedWrite(
                f"the branch of the roll-back does not contain the version of {table} that it restores"
            )


def check_files_exist(table: str, missing: Sequence[str]) -> None:
    """Check that the files of a restored table exist. A clean-up may have deleted them.

    Raises:
        InvalidInput: some of them are missing.
    """
    if missing:
        raise InvalidInput(
            f"{table} cannot be restored: {len(missing)} of its files are missing, for example {missing[0]}. A "
            "clean-up of the store, or Iceberg's own expiry of snapshots, deleted them"
        )


def restored_change(rows: int | None, rows_before: int | None) -> TableChange:
    """Return the change that a roll-back makes to a table.

    Args:
        rows: number of rows after the roll-back; None if it drops the table.
        rows_before: number of rows before the roll-back; None if the table does not exist.
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
    show_rows: ShowRows = "all",
) -> Pipeline:
    """Return the pipeline of a roll-back: the checks of whole tables, for the tables that remain after it.

    A restored version is audited by the checks under which it was published. Later checks may concern later data, such
    as a number of rows that only a later version has. If the version was published without checks, as by a compaction,
    the last checks before it are used.

    Args:
        earlier: the pipeline of the run that is rolled back, for tables without older checks.
        tables: the tables that are restored or dropped.
        remaining: the tables that exist after the roll-back.
        older: by table, the checks of the last run with checks, up to the restored version.
        allow_partial: True if tables may be published one by one, even if the pipeline does not say so.
        show_rows: people who may see rows of later runs that are rolled back too.
    """
    restored = {}
    for name in tables:
        held = {**earlier.tables, **older}
        checks = held[name].checks if name in held and name in remaining else []
        restored[name] = Table(checks=[check for check in checks if check.scope == "table"])
    options = PublishOptions(allow_partial=allow_partial or earlier.publish.allow_partial)
    changes: dict[str, object] = {"write": Write(job="rollback"), "tables": restored, "publish": options}
    changes["show_rows"] = strictest([earlier.show_rows, show_rows])
    changed = earlier.model_copy(update=changes)
    return Pipeline.model_validate(changed.model_dump(by_alias=True))


def describe_older_checks(older: Mapping[str, PublishedChecks]) -> list[str]:
    """Return a sentence for each run whose checks audit restored versions, with the tables concerned."""
    tables: dict[str, list[str]] = {}
    for table, published in sorted(older.items()):
        which = "this version" if published.is_of_version else "an earlier version, the last one with any"
        by = f"audited by the checks under which {published.workflow_id} published {which}"
        if published.table.checks:
            tables.setdefault(by, []).append(table)
    return [f"{', '.join(restored)}: {by}" for by, restored in tables.items()]


def tables_without_checks(audit: Pipeline, remaining: Collection[str]) -> list[str]:
    """Return the tables that a roll-back restores without any check. Quarantine tables never have checks.

    Args:
        audit: the pipeline of the roll-back.
        remaining: the tables that exist after the roll-back.
    """
    return [name for name in remaining if not audit.tables[name].checks and not is_quarantine_table(name)]


def describe_missing_checks(tables: Sequence[str], pipeline: str, *, is_given: bool) -> str:
    """Return the message that a roll-back restores tables without an audit, with the next step for a person.

    Args:
        pipeline: name of the pipeline whose run is rolled back.
        is_given: True if a person named the file with the checks.
    """
    where = "the file of --pipeline" if is_given else "main's history up to this version"
    named = f"to audit them, name a file of {pipeline} with such checks by --pipeline FILE"
    return (
        f"no checks are known for {', '.join(tables)}: {where} has no check of whole tables (`scope: table`), so "
        f"nothing is audited; {named}"
    )


def choose_rollback_pipeline(
    name: str, given: Pipeline | None, recorded: Pipeline | None, earlier: Pipeline | None
) -> Pipeline:
    """Return the pipeline whose checks audit a roll-back.

    Args:
        name: name of the pipeline whose run is rolled back.
        given: the pipeline that a person named.
        recorded: the pipeline that the run's commit on main records.
        earlier: the pipeline in Temporal's history of the run.

    Raises:
        InvalidPipeline: there is none, or its name differs from that of the run's pipeline.
    """
    pipeline = given or recorded or earlier
    if pipeline is None:
        raise InvalidPipeline(
            f"neither main nor Temporal has the checks of {name or 'this run'}: name its pipeline file by --pipeline"
        )
    if name and pipeline.name != name:
        raise InvalidPipeline(f"the run is of the pipeline {name!r}, not of {pipeline.name!r}")
    return pipeline
