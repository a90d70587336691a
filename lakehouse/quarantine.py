"""Quarantined branches: what they say of themselves, and what they hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.iceberg.table_state import TableState
from lakehouse.nessie.catalog import Catalogue
from lakehouse.nessie.errors import nessie_failures
from lakehouse.nessie.operations import mark
from sluice.contracts.activity_inputs import TableChange
from sluice.errors import InvalidPipeline
from sluice.publishing.certificate import AUDITED, BASE, CAUSE, EXPIRES, PIPELINE, REALM, REASON, RUN_ID, WORKFLOW_ID

PREFIX = "quarantine/"
_SAMPLE = 10


@dataclass(frozen=True)
class Quarantined:
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
            "realm": self.said.get(REALM, ""),
        }


def quarantined(catalogue: Catalogue) -> list[Quarantined]:
    """Return every quarantined branch that describes itself, the one that expires last first."""
    with nessie_failures(catalogue.uri):
        found = [
            Quarantined(each["name"], each["hash"], _said(each.get("metadata") or {}))
            for each in catalogue.v2.references(f"ref.name.startsWith('{PREFIX}')")
        ]
    return sorted((each for each in found if each.run_id), key=lambda each: each.said.get(EXPIRES, ""), reverse=True)


def keep_in_quarantine(catalogue: Catalogue, name: str, head: str, of: str, said: Mapping[str, str]) -> None:
    """Keep a hash of a branch under a quarantine's name, and let its last commit say why, whose, and which hash.

    Raises:
        NoSuchBranch: the branch is gone, and was not kept before.
    """
    if not catalogue.exists(name):
        catalogue.keep(name, head, of)
    if catalogue.head(name) == head:
        catalogue.commit(name, head, f"Quarantine: {said.get(REASON, '')}"[:500], [mark()], {**said, AUDITED: head})


def find_quarantined(catalogue: Catalogue, named: str) -> Quarantined:
    """Find a quarantined branch by its name, its run or workflow id, or its pipeline, which means the latest.

    Raises:
        InvalidPipeline: there is none.
    """
    for each in quarantined(catalogue):
        if named in (each.branch, each.run_id, each.workflow_id, each.pipeline):
            return each
    raise InvalidPipeline(f"nothing of {named!r} is quarantined: `quarantine list` shows what is")


@dataclass(frozen=True)
class Held:
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


def held(catalogue: Catalogue, io: Mapping[str, str], found: Quarantined, *, rows: bool = False) -> Iterator[Held]:
    """Yield what a quarantined branch holds beside the main that it began at, table by table."""
    for key in catalogue.changes(found.base, found.branch, found.audited):
        if key.kind == "NAMESPACE":
            continue
        if key.after is None:
            yield Held(key.name, None, [], 0, [])
            continue
        state = TableState.load(key.after, key.before, io)
        files = [entry.data_file for entry in state.entries(added_only=True)]
        before = TableState.load(key.before, None, io).types if key.before else {}
        sample = _rows(state, [file.file_path for file in files]) if rows else []
        size = sum(file.file_size_in_bytes for file in files)
        yield Held(key.name, state.change(), _differences(before, state.types), size, sample)


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
