"""Convert commits and branches from Nessie's JSON to the port's values."""

from datetime import datetime
from typing import Any

from lakehouse.catalog import BranchInfo, CommitInfo


def commit_info(commit: dict[str, Any]) -> CommitInfo:
    """Return a commit from its `CommitMeta`."""
    parents = commit.get("parentCommitHashes") or [""]
    return CommitInfo(
        hash=commit["hash"],
        parent=parents[0],
        merged=parents[1] if len(parents) > 1 else "",
        message=commit.get("message", ""),
        committed_at=_time(commit),
        properties=_properties(commit),
    )


def branch_info(reference: dict[str, Any]) -> BranchInfo:
    """Return a branch from its `Reference` with the metadata of its head."""
    commit = (reference.get("metadata") or {}).get("commitMetaOfHEAD") or {}
    return BranchInfo(reference["name"], reference["hash"], _time(commit), _properties(commit))


def _time(commit: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(str(commit.get("commitTime", "2000-01-01T00:00:00"))[:19] + "+00:00")


def _properties(commit: dict[str, Any]) -> dict[str, str]:
    return {key: values[0] for key, values in (commit.get("allProperties") or {}).items() if values}
