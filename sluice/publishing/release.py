"""Release of a quarantine: a run that verifies and audits the quarantined rows again."""

import hashlib
import re
from collections.abc import Sequence

from sluice.contracts.existing_rows import Resume, ResumeBranchInput
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import WriteResult
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.loading_rules import traits_of
from sluice.pipeline.model import Pipeline
from sluice.pipeline.write import Write
from sluice.publishing.written_tables import WrittenTable, check_rebased

_ID_DIGITS = 12
_STATEMENT = re.compile(r"statement (\d{1,6}): ")
"""Pattern of the message that names the failed statement of a job."""
_SHOWN_OF_STATEMENT = 60


def verified_write(
    written: WriteResult | None, attempt: int, write: Write, *, rows_quarantined: bool
) -> VerifiedWrite | None:
    """Return the verified write that a quarantine records, or None if the run failed before its verification."""
    if written is None or not written.tables:
        return None
    return VerifiedWrite(
        head=written.head,
        attempt=attempt,
        tables={name: change.added_rows - change.deleted_rows for name, change in written.tables.items()},
        appends=write.rebases,
        rows_quarantined=rows_quarantined,
    )


def plan_release(summary: QuarantineSummary, base: str, verified: VerifiedWrite, statements: Sequence[str]) -> Resume:
    """Plan a release of exactly the quarantined rows, repaired by these SQL statements if there are any.

    Once the rows are published, the quarantined branch is deleted.
    """
    return Resume(
        branch=summary.branch, run_id=summary.run_id, base=base, head=verified.head, statements=list(statements)
    )


def check_releasable(summary: QuarantineSummary, verified: VerifiedWrite | None, installation: str) -> VerifiedWrite:
    """Check that a quarantine may be released or repaired, and return the write that its run verified.

    Args:
        installation: the installation that releases it.

    Raises:
        InvalidInput: the quarantine may not be released.
    """
    if why := release_refusal(summary, installation):
        raise InvalidInput(why)
    assert verified is not None  # the summary says so
    return verified


def release_refusal(summary: QuarantineSummary, installation: str) -> str:
    """Return the reason why a quarantine may not be released or repaired; empty if it may.

    A repair by SQL needs a verified write, too: no statement can recognise the rows that a failed job did not write.

    Args:
        installation: the installation that releases it.
    """
    branch = summary.branch
    if summary.problem:
        return (
            f"{branch} cannot be released or repaired: {summary.problem}. "
            "`quarantine show` shows its content, `quarantine discard` deletes it"
        )
    if summary.installation != installation:
        return (
            f"{branch} belongs to the installation {summary.installation!r}, and this one is {installation!r}: "
            "release it where its run was started"
        )
    if summary.target:
        return (
            f"{branch} contains a partition that a backfill publishes together with others, so it cannot be "
            "released alone: repair its files or the pipeline, and begin it again by "
            f"`backfill retry {summary.pipeline}`"
        )
    if not summary.verified:
        return (
            f"{branch} cannot be released or repaired: its run ended before the write was verified, so it may "
            "contain only some of the rows. Read it by `quarantine show`, and run the pipeline again"
        )
    return ""


def check_resume(resume: Resume, summary: QuarantineSummary, base: str, quarantined_hash: str) -> None:
    """Check that a release resumes the quarantine for which it was planned.

    Raises:
        InvalidInput: the branch is another quarantine now, or the request names another hash.
    """
    planned = (resume.run_id, resume.base, resume.head)
    if planned != (summary.run_id, base, quarantined_hash):
        raise InvalidInput(
            f"{resume.branch} is not the quarantine that this release was planned for: it keeps "
            f"{quarantined_hash[:12]} of run {summary.run_id}. Release it again by `quarantine release`"
        )


def check_quarantined_write(branch: str, verified: VerifiedWrite, tables: Sequence[WrittenTable]) -> None:
    """Check that a quarantined branch contains exactly the write that its run verified.

    Raises:
        UnexpectedWrite: the branch contains something else.
    """
    check_rebased(branch, "its verified write", _as_written(verified), tables)


def check_resumed_write(
    branch: str, resume: Resume, verified: VerifiedWrite, tables: Sequence[WrittenTable]
) -> dict[str, TableChange]:
    """Check that the branch of a release contains exactly the quarantined rows, and return its changes.

    Raises:
        UnexpectedWrite: the branch contains something else.
    """
    return check_rebased(branch, resume.branch, _as_written(verified), tables)


def check_not_published(resume: Resume, workflow_id: str, commit: str) -> None:
    """Check that main does not contain the rows of a quarantine.

    Args:
        workflow_id: the run that published them; empty if there is none.
        commit: the commit of that run on main.

    Raises:
        InvalidInput: main contains the rows.
    """
    if commit:
        raise InvalidInput(
            f"the rows of {resume.branch} were published by {workflow_id or 'another run'}, commit {commit[:12]} on "
            "main: discard the quarantine by `quarantine discard`"
        )


def may_append(input: ResumeBranchInput, verified: VerifiedWrite) -> bool:
    """Return True if quarantined files may be added to a newer main: the old and the new pipeline must allow it."""
    return verified.appends and input.write.rebases


def not_added_to_main(resume: Resume, problem: str, write: Write, tables: Sequence[str]) -> str:
    """Return the message that quarantined rows cannot be added, because main changed after they were written."""
    text = f"main changed since {resume.branch} was written, and {problem}"
    if not traits_of(write, tables).order_matters:
        return f"{text}: run the pipeline again"
    return (
        f"{text}. The quarantined rows are older than the rows that main got meanwhile, and would replace them: "
        "discard the quarantine, or run the pipeline again if the older rows are to win"
    )


def release_digest(branch: str, head: str) -> str:
    """Return the identity of a release. Two simultaneous releases of one quarantine are the same run."""
    return hashlib.sha256(f"{branch}\0{head}".encode()).hexdigest()


def release_workflow_id(pipeline: str, branch: str, head: str) -> str:
    """Return the workflow id that every release and repair of a quarantine has."""
    return f"{pipeline}-{release_digest(branch, head)[:_ID_DIGITS]}"


def describe_untouched_quarantine(resume: Resume) -> str:
    """Describe the quarantine after an unpublished release or repair, and the next step, for a person."""
    again = "repair it again" if resume.statements else "repair it, or release it again"
    return f"the quarantine {resume.branch} is untouched: {again}"


def name_failed_statement(reason: str, resume: Resume) -> str:
    """Return the reason of a failed repair, with the number and beginning of the failed statement if they are known."""
    numbered = _STATEMENT.match(reason)
    number = int(numbered[1]) if numbered else 1
    if number > len(resume.statements) or (not numbered and len(resume.statements) > 1):
        return reason
    return f"statement {number} ({_beginning(resume.statements[number - 1])}): {_STATEMENT.sub('', reason)}"


def _beginning(statement: str) -> str:
    """Return the beginning of a statement, up to its first quoted value."""
    text = " ".join(statement.split())
    shown = re.split(r"[\"']", text, maxsplit=1)[0][:_SHOWN_OF_STATEMENT].rstrip()
    return shown if shown == text else f"{shown} …"


def choose_pipeline(quarantined: QuarantineSummary, earlier: Pipeline | None, given: Pipeline | None) -> Pipeline:
    """Return the pipeline that audits released rows: the given one, or that of the quarantined run.

    Raises:
        InvalidPipeline: there is neither, or its name is not that of the quarantined run's pipeline.
    """
    pipeline = given or earlier
    if pipeline is None:
        raise InvalidPipeline(
            f"the pipeline of run {quarantined.run_id} is not known: Temporal no longer has its history, or the file "
            "was edited while its backfill ran. Name the file by --pipeline"
        )
    if pipeline.name != quarantined.pipeline:
        raise InvalidPipeline(
            f"{quarantined.branch} is of the pipeline {quarantined.pipeline!r}, not of {pipeline.name!r}"
        )
    return pipeline


def _as_written(verified: VerifiedWrite) -> WriteResult:
    """Return a verified write in the form of a verification's result, with net rows only."""
    changes = {
        table: TableChange(operation="verified", added_rows=max(rows, 0), deleted_rows=max(-rows, 0))
        for table, rows in verified.tables.items()
    }
    return WriteResult(head=verified.head, tables=changes)
