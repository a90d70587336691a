"""Quarantined branches: their descriptions and their contents."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.row_comparison import count_changed_rows
from lakehouse.iceberg.table_state import TableState
from sluice.ambiguous_names import describe_several
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.quarantine_queries import QuarantineSummary
from sluice.contracts.table_changes import TableChange
from sluice.errors import CatalogRefused, InvalidInput, InvalidPipeline
from sluice.identifiers import suggested_run
from sluice.publishing.commit_properties import (
    BASE,
    CAUSE,
    EXPIRES,
    INSTALLATION,
    PIPELINE,
    QUARANTINED,
    REASON,
    RUN_ID,
    TARGET,
    VERIFIED,
    WORKFLOW_ID,
)
from sluice.sql.arrow_values import python_rows
from sluice.times import format_time

PREFIX = "quarantine/"
CREATED = "sluice.created"
"""Property of a quarantine with its time of creation, in ISO 8601."""
_DAY = re.compile(r"/(\d{4}-\d\d-\d\d)/")
_NEEDED = (RUN_ID, WORKFLOW_ID, PIPELINE, INSTALLATION, BASE, QUARANTINED, EXPIRES)
"""Properties that every quarantine has. A quarantine made by hand may lack some."""


@dataclass(frozen=True)
class QuarantinedBranch:
    """One quarantined branch, as its last commit describes it."""

    branch: str
    head: str
    properties: Mapping[str, str]

    @property
    def run_id(self) -> str:
        """Id of the run that was not published."""
        return self.properties.get(RUN_ID, "")

    @property
    def workflow_id(self) -> str:
        """Workflow id of that run."""
        return self.properties.get(WORKFLOW_ID, "")

    @property
    def pipeline(self) -> str:
        """Name of its pipeline."""
        return self.properties.get(PIPELINE, "")

    @property
    def base(self) -> str:
        """Hash of main from which its branch was created; empty if not recorded."""
        return self.properties.get(BASE, "")

    @property
    def quarantined_hash(self) -> str:
        """Hash with exactly the unpublished changes, audited or not; empty if not recorded."""
        return self.properties.get(QUARANTINED, "")

    @property
    def installation(self) -> str:
        """Installation that owns it; empty if not recorded."""
        return self.properties.get(INSTALLATION, "")

    @property
    def expires(self) -> datetime | None:
        """End of its retention; None if it is not recorded, or not in ISO 8601."""
        try:
            expires = datetime.fromisoformat(self.properties.get(EXPIRES, ""))
        except ValueError:
            return None
        return expires if expires.tzinfo else expires.replace(tzinfo=timezone.utc)

    @property
    def created(self) -> str:
        """Time of the quarantine, in ISO 8601; the day in its name if the time is not recorded."""
        day = _DAY.search(self.branch)
        return self.properties.get(CREATED) or (day[1] if day else "")

    @property
    def verified(self) -> VerifiedWrite | None:
        """The whole write as its run verified it; None if the run failed before, or the record cannot be read."""
        try:
            return VerifiedWrite.model_validate_json(self.properties.get(VERIFIED, ""))
        except ValidationError:
            return None

    @property
    def problem(self) -> str:
        """Defect of its description; empty if the description is complete."""
        if missing := [name for name in _NEEDED if not self.properties.get(name)]:
            return f"its last commit lacks {', '.join(missing)}"
        return "" if self.expires else f"{self.properties[EXPIRES][:50]!r} is not a date ({EXPIRES})"

    @property
    def is_complete(self) -> bool:
        """True if it records the quarantined hash, and the hash of main from which its branch was created."""
        return bool(self.base and self.quarantined_hash)

    @property
    def summary(self) -> QuarantineSummary:
        """Summary for people and programs."""
        return QuarantineSummary(
            branch=self.branch,
            head=self.head,
            quarantined_hash=self.quarantined_hash,
            created=self.created,
            run_id=self.run_id,
            workflow_id=self.workflow_id,
            pipeline=self.pipeline,
            cause=self.properties.get(CAUSE, ""),
            reason=self.properties.get(REASON, ""),
            expires=self.properties.get(EXPIRES, ""),
            installation=self.installation,
            verified=self.verified is not None and self.verified.head == self.quarantined_hash,
            problem=self.problem,
            target=self.properties.get(TARGET, ""),
            tables={**self.verified.tables} if self.verified else {},
        )


def list_quarantined_branches(catalog: BranchCatalog) -> list[QuarantinedBranch]:
    """Return every quarantined branch, newest first.

    Branches made by hand or by another program are included: their `problem` states what their description lacks.
    """
    branches = [QuarantinedBranch(each.name, each.head, each.properties) for each in catalog.list_branches(PREFIX)]
    return sorted(branches, key=lambda branch: (branch.created, branch.branch), reverse=True)


def create_quarantine(catalog: BranchCatalog, name: str, head: str, of: str, properties: Mapping[str, str]) -> None:
    """Copy a branch at a hash to a quarantine, described by the properties of its last commit.

    Raises:
        NoSuchBranch: the branch does not exist, and was not copied before.
        CatalogRefused: a branch of this name exists and keeps something else.
    """
    if catalog.find_head(name) is None:
        catalog.copy_branch(name, of, head)
    if catalog.head(name) == head:
        message = f"Quarantine: {properties.get(REASON, '')}"[:500]
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        catalog.commit_tables(name, head, message, properties={CREATED: now, **properties, QUARANTINED: head})
    elif not keeps(catalog, name, head):
        raise CatalogRefused(f"the branch {name} exists already, but is not the quarantine of {head[:12]}")


def keeps(catalog: BranchCatalog, name: str, head: str) -> bool:
    """Return True if a branch is the quarantine of a hash."""
    quarantined = (each.properties.get(QUARANTINED) for each in catalog.list_branches(name) if each.name == name)
    return head in quarantined


def read_quarantined_branch(catalog: BranchCatalog, name: str) -> QuarantinedBranch:
    """Read the quarantined branch of exactly this name.

    Raises:
        InvalidInput: there is none.
    """
    for each in catalog.list_branches(name):
        if each.name == name and name.startswith(PREFIX):
            return QuarantinedBranch(each.name, each.head, each.properties)
    raise InvalidInput(f"the quarantine {name} does not exist any more: it was discarded or released, or it expired")


def find_quarantined_branch(catalog: BranchCatalog, named: str) -> QuarantinedBranch:
    """Find the newest quarantined branch by branch name, run id, workflow id or pipeline, for reading.

    Raises:
        InvalidPipeline: there is none.
    """
    return _matching(catalog, named)[0]


def find_only_quarantined_branch(catalog: BranchCatalog, named: str) -> QuarantinedBranch:
    """Find the one quarantined branch of a name, to publish, delete or keep it.

    Raises:
        InvalidPipeline: there is none, or there are several.
    """
    matching = _matching(catalog, named)
    if len(matching) > 1:
        lines = [
            f"{each.run_id or each.branch}  {each.pipeline}  of {format_time(each.created)}, "
            f"kept until {format_time(each.properties.get(EXPIRES, ''))}"
            for each in matching
        ]
        raise InvalidPipeline(describe_several(named, "quarantines", lines))
    return matching[0]


def _matching(catalog: BranchCatalog, named: str) -> list[QuarantinedBranch]:
    """Return the quarantined branches of a name, newest first: at least one."""
    quarantined = list_quarantined_branches(catalog)
    matching = [
        each for each in quarantined if named and named in (each.branch, each.run_id, each.workflow_id, each.pipeline)
    ]
    if not matching:
        ids = [id for each in quarantined for id in (each.branch, each.run_id, each.workflow_id)]
        close = suggested_run(named, [each.pipeline for each in quarantined], ids)
        raise InvalidPipeline(f"nothing of {named!r} is quarantined{close}: `quarantine list` lists all quarantines")
    return matching


@dataclass(frozen=True)
class QuarantinedTable:
    """Changes of one table on a quarantined branch."""

    name: str
    change: TableChange | None
    """None if the table was dropped."""
    columns: list[str]
    """Columns added, dropped or changed, as `+ name type` and `- name type`."""
    bytes: int
    """Size of the data files that only this branch has, in bytes."""
    rows: list[dict[str, Any]]
    """A sample of the added rows."""


def read_quarantined_tables(
    catalog: BranchCatalog, io: Mapping[str, str], branch: QuarantinedBranch, *, rows: int = 0
) -> Iterator[QuarantinedTable]:
    """Yield the changes of a quarantined branch since its base on main, table by table.

    Yields nothing if the branch does not record both hashes.

    Args:
        rows: maximum number of added rows to read per table.
    """
    for diff in catalog.diff(branch.base, branch.branch, branch.quarantined_hash) if branch.is_complete else ():
        if diff.after is None:
            yield QuarantinedTable(diff.name, None, [], 0, [])
            continue
        state = TableState.load(diff.after, diff.before, io)
        files = [entry.data_file for entry in state.entries(added_only=True)]
        before = TableState.load(diff.before, None, io).types if diff.before else {}
        sample = _rows(state, [file.file_path for file in files], rows) if rows else []
        size = sum(file.file_size_in_bytes for file in files)
        change = state.change().model_copy(update={"rows": count_changed_rows(state)})
        yield QuarantinedTable(diff.name, change, _differences(before, state.types), size, sample)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    dropped = [f"- {name} {kind}" for name, kind in before.items() if after.get(name) != kind]
    return dropped + [f"+ {name} {kind}" for name, kind in after.items() if before.get(name) != kind]


def _rows(state: TableState, files: list[str], limit: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in files:
        if len(rows) < limit and file.endswith(".parquet"):
            with state.table.io.new_input(file).open() as stream:
                batches = pq.ParquetFile(stream).iter_batches(batch_size=limit)
                first = next(batches, pa.RecordBatch.from_pylist([]))
                rows += python_rows(first)
    return rows[:limit]
