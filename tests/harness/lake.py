"""An independent reader of the lake: it uses Nessie's REST API and Iceberg's files, and none of Sluice's code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from pyiceberg.table import StaticTable

from lakehouse.audit.results_table import BRANCH as AUDIT_RESULTS_BRANCH


class LakeReader:
    """A reader of the lake that uses only Nessie's REST API and Iceberg's files."""

    def __init__(self, variables: Mapping[str, str], io: Mapping[str, str] | None = None) -> None:
        """Open the lake of a stack. `io` has the properties by which PyIceberg reads a store."""
        self._uri, self._io = variables["NESSIE_URI"], dict(io or {})
        token = Path(variables["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
        self._http = requests.Session()
        self._http.headers["Authorization"] = f"Bearer {token}"

    @classmethod
    def of_store(cls, variables: Mapping[str, str], access: Mapping[str, str]) -> "LakeReader":
        """Open the lake of a stack with an object store. The variables give access to it."""
        io = {
            "s3.endpoint": access["AWS_ENDPOINT_URL_S3"],
            "s3.region": access["AWS_REGION"],
            "s3.access-key-id": access["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": access["AWS_SECRET_ACCESS_KEY"],
        }
        return cls(variables, io)

    def rows(self, table: str, ref: str = "main") -> list[dict[str, Any]]:
        """Return all rows of a table on a branch, or none if the table does not exist."""
        version = self._table(table, ref)
        rows: list[dict[str, Any]] = version.scan().to_arrow().to_pylist() if version else []
        return rows

    def is_by_spark(self, table: str) -> list[bool]:
        """Return for each snapshot of a table on main, oldest first, if Spark made it."""
        version = self._table(table, "main")
        made = sorted(version.snapshots(), key=lambda each: each.sequence_number or 0) if version else []
        return [each.summary is not None and "engine-name" in each.summary.additional_properties for each in made]

    def _table(self, table: str, ref: str) -> StaticTable | None:
        response = self._http.get(f"{self._uri}/trees/{quote(ref, safe='')}/contents/{table}", timeout=30)
        if response.status_code == 404:
            return None
        return StaticTable.from_metadata(response.json()["content"]["metadataLocation"], self._io)

    def head(self, ref: str = "main") -> str:
        """Return the head of a branch."""
        response = self._http.get(f"{self._uri}/trees/{quote(ref, safe='')}", timeout=30).json()
        return str(response["reference"]["hash"])

    def branches(self, containing: str = "") -> list[str]:
        """Return the names of all branches that contain a text, except main and that of the audit results table."""
        references = self._http.get(f"{self._uri}/trees", timeout=30).json()["references"]
        names = [reference["name"] for reference in references]
        return [each for each in names if each not in ("main", AUDIT_RESULTS_BRANCH) and containing in each]

    def discard(self, branch: str) -> None:
        """Delete a branch."""
        deleted = self._http.delete(f"{self._uri}/trees/{quote(branch, safe='')}@{self.head(branch)}", timeout=30)
        assert deleted.ok, deleted.text

    def commit(self, commit_hash: str) -> dict[str, Any]:
        """Return the properties, authors and parents of a commit."""
        page = self._http.get(f"{self._uri}/trees/@{commit_hash}/history?max-records=1", timeout=30).json()
        commit: dict[str, Any] = page["logEntries"][0]["commitMeta"]
        return commit
