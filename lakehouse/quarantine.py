"""Quarantined branches: what they say of themselves, and what they hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.iceberg.table_state import TableState
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.nessie.errors import translate_nessie_errors
from lakehouse.nessie.operations import no_change_operation
from sluice.contracts.activity_inputs import TableChange
from sluice.errors import InvalidPipeline
from sluice.publishing.certificate import (
    AUDITED,
    BASE,
    CAUSE,
    EXPIRES,
    INSTALLATION,
    PIPELINE,
    REASON,
    RUN_ID,
    WORKFLOW_ID,
)

PREFIX = "quarantine/"
_SAMPLE = 10


@dataclass(frozen=True)
class QuarantinedBranch:
    """One quarantined branch, as its last commit describes it."""

    branch: str
    head: str
    said: Mapping[str, str]

    @property
    def run_id(self) -> str:
        """The run that was kept out."""
        return self.said.get(RUN_ID, "")

    @property
    def workflow_id(self) -> str:
        """That run's workflow id."""
        return self.said.get(WORKFLOW_ID, "")

    @property
    def pipeline(self) -> str:
        """Its pipeline."""
        return self.said.get(PIPELINE, "")

    @property
    def base(self) -> str:
        """The hash of main that its branch began at."""
        return self.said[BASE]

    @property
    def audited(self) -> str:
        """The hash that holds exactly what was kept out."""
        return self.said[AUDITED]

    @property
    def expires(self) -> datetime | None:
        """Until when it is kept."""
        found = self.said.get(EXPIRES)
        return datetime.fromisoformat(found) if found else None

    def fields(self) -> dict[str, Any]:
        """Return what is known of it, for people and programs."""
        return {
            "branch": self.branch,
            "run_id": self.run_id,
            "workflow_id": self.workflow_id,
            "pipeline": self.pipeline,
            "cause": self.said.get(CAUSE, ""),
            "reason": self.said.get(REASON, ""),
            "expires": self.said.get(EXPIRES, ""),
            "installation": self.said.get(INSTALLATION, ""),
        }


def list_quarantined_branches(catalog: NessieCatalog) -> list[QuarantinedBranch]:
    """Return every quarantined branch that describes itself, the one that expires last first."""
    with translate_nessie_errors(catalog.uri):
        found = [
            QuarantinedBranch(each["name"], each["hash"], _said(each.get("metadata") or {}))
            for each in catalog.v2.references(f"ref.name.startsWith('{PREFIX}')")
        ]
    return sorted((each for each in found if each.run_id), key=lambda each: each.said.get(EXPIRES, ""), reverse=True)


def create_quarantine(catalog: NessieCatalog, name: str, head: str, of: str, said: Mapping[str, str]) -> None:
    """Keep a hash of a branch under a quarantine's name, and let its last commit say why, whose, and which hash.

    Raises:
        NoSuchBranch: the branch is gone, and was not kept before.
    """
    if not catalog.exists(name):
        catalog.keep(name, head, of)
    if catalog.head(name) == head:
        catalog.commit(
            name, head, f"Quarantine: {said.get(REASON, '')}"[:500], [no_change_operation()], {**said, AUDITED: head}
        )


def find_quarantined_branch(catalog: NessieCatalog, named: str) -> QuarantinedBranch:
    """Find a quarantined branch by its name, its run or workflow id, or its pipeline, which means the latest.

    Raises:
        InvalidPipeline: there is none.
    """
    for each in list_quarantined_branches(catalog):
        if named in (each.branch, each.run_id, each.workflow_id, each.pipeline):
            return each
    raise InvalidPipeline(f"nothing of {named!r} is quarantined: `quarantine list` shows what is")


@dataclass(frozen=True)
class HeldTable:
    """What a branch holds of one table."""

    name: str
    change: TableChange | None
    """None where the table was dropped."""
    columns: list[str]
    """Columns that came, went or changed, as `+ name type` and `- name type`."""
    bytes: int
    """The size of data files that only this branch holds."""
    rows: list[dict[str, Any]]
    """A few of the rows that were added."""


def read_held_tables(
    catalog: NessieCatalog, io: Mapping[str, str], found: QuarantinedBranch, *, rows: bool = False
) -> Iterator[HeldTable]:
    """Yield what a quarantined branch holds beside the main that it began at, table by table."""
    for key in catalog.changes(found.base, found.branch, found.audited):
        if key.kind == "NAMESPACE":
            continue
        if key.after is None:
            yield HeldTable(key.name, None, [], 0, [])
            continue
        state = TableState.load(key.after, key.before, io)
        files = [entry.data_file for entry in state.entries(added_only=True)]
        before = TableState.load(key.before, None, io).types if key.before else {}
        sample = _rows(state, [file.file_path for file in files]) if rows else []
        size = sum(file.file_size_in_bytes for file in files)
        yield HeldTable(key.name, state.change(), _differences(before, state.types), size, sample)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    gone = [f"- {name} {kind}" for name, kind in before.items() if after.get(name) != kind]
    return gone + [f"+ {name} {kind}" for name, kind in after.items() if before.get(name) != kind]


def _rows(state: TableState, files: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in files:
        if len(found) < _SAMPLE and file.endswith(".parquet"):
            with state.table.io.new_input(file).open() as stream:
                batches = pq.ParquetFile(stream).iter_batches(batch_size=_SAMPLE)
                first = next(batches, pa.RecordBatch.from_pylist([]))
                found += first.to_pylist()
    return found[:_SAMPLE]


def _said(metadata: Mapping[str, Any]) -> dict[str, str]:
    head = metadata.get("commitMetaOfHEAD") or {}
    return {key: values[0] for key, values in (head.get("allProperties") or {}).items()}
