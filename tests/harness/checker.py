"""The checker: an independent reader of the lake that verifies what runs left.

It imports none of Sluice's code, and reads the lake by Nessie's REST API and PyIceberg alone. Every row of a source
file has a tag that no other row of any file has. These conditions must hold after the runs:

- Each tag of a published run is on main exactly once, even if its file was in several runs. No other tag is on main.
- No commit on main removed a row, unless its run was meant to remove rows.
- Every commit on main is a merge of the hash that its certificate names as audited.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from pyiceberg.table import StaticTable, Table

_CERTIFICATE = ("sluice.run-id", "sluice.workflow-id", "sluice.pipeline", "sluice.audited-hash", "sluice.audit-digest")


@dataclass(frozen=True)
class TableRows:
    """A version of a table, whose rows can be read."""

    table: Table
    snapshot: int | None = None
    """The snapshot to read; None stands for the current one of the metadata."""

    def column(self, name: str) -> list[str]:
        """Return the values of a column as text."""
        scan = self.table.scan(selected_fields=(name,), snapshot_id=self.snapshot)
        return [str(value) for value in scan.to_arrow()[name].to_pylist()]

    def files(self) -> Counter[str]:
        """Return how often each live data file is listed, together with the deletes that apply to it."""
        files: Counter[str] = Counter()
        for task in self.table.scan(snapshot_id=self.snapshot).plan_files():
            deletes = ",".join(sorted(delete.file_path for delete in task.delete_files))
            files[f"{task.file.file_path} {deletes}"] += 1
        return files


class Checker:
    """A reader of a Nessie server, with a token that permits reading. `column` contains the tags."""

    def __init__(self, uri: str, token_file: str, column: str = "tag") -> None:
        self._uri, self._column = uri, column
        self._http = requests.Session()
        self._http.headers["Authorization"] = f"Bearer {Path(token_file).read_text().strip()}"

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        answer = self._http.get(f"{self._uri}/{path}", params=query, timeout=30)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body

    def head(self) -> str:
        """Return the head of main."""
        return str(self._get("trees/main")["reference"]["hash"])

    def branches(self) -> list[str]:
        """Return every branch except main and the branch of the audit results."""
        names = [each["name"] for each in self._get("trees")["references"]]
        return [name for name in names if name not in ("main", "sluice/audits")]

    def commits(self, since: str) -> Iterator[dict[str, Any]]:
        """Yield the commits on main after a hash, newest first."""
        query = {"max-records": "200"}
        while True:
            page = self._get("trees/main/history", **query)
            for entry in page["logEntries"]:
                if entry["commitMeta"]["hash"] == since:
                    return
                yield entry["commitMeta"]
            if not page["hasMore"]:
                return
            query["page-token"] = page["token"]

    def tags(self, table: str, at: str = "") -> list[str]:
        """Return the tag of every row of a table on main, at its head or at a given hash."""
        version = self.table(table, at)
        return version.column(self._column) if version else []

    def table(self, name: str, at: str = "") -> TableRows | None:
        """Return a table on main, at its head or at a given hash. Return None if it does not exist."""
        reference = f"main@{at}" if at else "main"
        answer = self._http.get(f"{self._uri}/trees/{quote(reference)}/contents/{quote(name)}", timeout=30)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return TableRows(StaticTable.from_metadata(answer.json()["content"]["metadataLocation"]))

    def problems(
        self,
        since: str,
        published: Mapping[str, Iterable[str]],
        tables: Iterable[str],
        removing: Collection[str] = (),
    ) -> list[str]:
        """Return a message for each violated condition.

        Args:
            since: the head of main before the runs.
            published: the tags of each run that reports that it was published, by run id.
            tables: all tables that runs wrote to.
            removing: the ids of runs that were meant to remove rows.
        """
        tables = list(tables)
        return [
            *self._of_rows(published, tables),
            *self._of_commits(since, published),
            *self._of_removals(since, tables, removing),
            *self._of_the_log(tables),
        ]

    def _of_the_log(self, tables: Iterable[str]) -> Iterable[str]:
        """Compare the tables with what the catalog records of them elsewhere. Nessie has one record."""
        return ()

    def _of_removals(self, since: str, tables: Iterable[str], removing: Collection[str]) -> Iterator[str]:
        """Compare the data files of each table before and after each commit. Read rows only if files were removed."""
        for commit in self.commits(since):
            run = commit.get("allProperties", {}).get("sluice.run-id", [""])[0]
            if run in removing:
                continue
            before, after = commit["parentCommitHashes"][0], commit["hash"]
            for table in tables:
                if self._files(table, before) <= self._files(table, after):
                    continue
                for tag in sorted((Counter(self.tags(table, before)) - Counter(self.tags(table, after))).elements()):
                    yield f"{tag} left {table} by {after[:12]}, of run {run or 'unknown'}, which was not to remove it"

    def _files(self, table: str, at: str) -> Counter[str]:
        version = self.table(table, at)
        return version.files() if version else Counter()

    def _of_rows(self, published: Mapping[str, Iterable[str]], tables: Iterable[str]) -> Iterator[str]:
        published_tags = Counter(tag for table in tables for tag in self.tags(table))
        wanted = {tag for tags in published.values() for tag in tags}
        for tag in sorted(wanted - published_tags.keys()):
            yield f"{tag} of a published run is not on main"
        for tag, count in sorted(published_tags.items()):
            if tag not in wanted:
                yield f"{tag} is on main, and its run was not published"
            elif count > 1:
                yield f"{tag} is on main {count} times"

    def _of_commits(self, since: str, published: Mapping[str, Iterable[str]]) -> Iterator[str]:
        runs: Counter[str] = Counter()
        for commit in self.commits(since):
            certificate = {key: values[0] for key, values in commit.get("allProperties", {}).items()}
            parents = commit["parentCommitHashes"]
            if len(parents) != 2:
                yield f"{commit['hash'][:12]} on main is not a merge: {commit['message']}"
                continue
            missing = [key for key in _CERTIFICATE if not certificate.get(key)]
            if missing:
                yield f"{commit['hash'][:12]} on main lacks {', '.join(missing)}"
            elif certificate["sluice.audited-hash"] != parents[1]:
                yield f"{commit['hash'][:12]} merges {parents[1]}, but {certificate['sluice.audited-hash']} was audited"
            runs[certificate.get("sluice.run-id", "")] += 1
        for run, count in runs.items():
            if count > 1:
                yield f"run {run} was merged {count} times"
            if run not in published:
                yield f"run {run} is on main, and says that it was not published"
        for run in published:
            if run not in runs:
                yield f"run {run} says that it was published, and main has no commit of it"
