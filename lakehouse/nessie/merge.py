"""Merges into main, pinned to a hash: the dry run, the merge, and the search for an earlier merge."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from lakehouse.catalog import CommitInfo
from lakehouse.nessie.descriptions import commit_info
from lakehouse.nessie.errors import NessieRequestRefused
from lakehouse.nessie.filters import having_properties
from lakehouse.nessie.rest_v2 import NessieRest
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import NoSuchBranch, ServiceUnavailable
from sluice.identifiers import joined_name


def dry_run(rest: NessieRest, main: tuple[str, str], branch: str, head: str) -> dict[str, Any]:
    """Return Nessie's answer to a dry run of merging a branch at `head`.

    Args:
        main: its name and its head.
    """
    return _merge(rest, main, branch, head, {"message": "a dry run"}, {}, dry=True)


def merge(
    rest: NessieRest, main: tuple[str, str], branch: BranchRef, head: str, meta: dict[str, Any]
) -> Publication | None:
    """Merge exactly the hash `head`, if main still has its tables as at the base of the branch.

    Returns:
        None if there was nothing to merge: the hash is merged already.
    """
    try:
        differences = list(rest.differences(branch.base, branch.name, head))
    except NessieRequestRefused as error:
        if error.status == 404:
            raise NoSuchBranch(f"the branch {branch.name} does not exist") from error
        raise
    expected = {tuple(each["key"]["elements"]): each["from"] for each in differences if each.get("from")}
    answer = _merge(rest, main, branch.name, head, meta, expected, dry=False)
    if answer["wasSuccessful"] and answer["wasApplied"]:
        before, after = answer["effectiveTargetHash"], answer["resultantTargetHash"]
        return Publication(merged=True, main_before=before, main_after=after)
    conflicts = conflicting_keys(answer)
    return Publication(merged=False, conflicts=conflicts) if conflicts else None


def conflicting_keys(answer: Mapping[str, Any]) -> list[str]:
    """Return the keys whose conflict prevented a merge."""
    return [joined_name(each["key"]["elements"]) for each in answer.get("details", ()) if each.get("conflict")]


def find_merge(rest: NessieRest, main: str, head: str, since: str) -> Publication | None:
    """Return the merge commit on main, after the hash `since`, that has the hash `head` as its second parent."""
    for commit in rest.history(main):
        parents = commit["parentCommitHashes"]
        if head in parents[1:]:
            return Publication(merged=True, main_before=parents[0], main_after=commit["hash"])
        if commit["hash"] == since:
            return None
    return None


def find_commit(rest: NessieRest, main: str, properties: Mapping[str, str], since: str) -> CommitInfo | None:
    """Return the newest commit on main, after the hash `since` if given, that carries all of these properties."""
    if not since:
        newest = next(rest.history(main, filter=having_properties(properties)), None)
        return commit_info(newest) if newest else None
    for meta in rest.history(main):  # the server's filter would read the whole history
        if meta["hash"] == since:
            return None
        commit = commit_info(meta)
        if properties.items() <= commit.properties.items():
            return commit
    return None


def list_commits(rest: NessieRest, main: str, properties: Mapping[str, str], after: datetime) -> Iterator[CommitInfo]:
    """Yield the commits on main after a time that carry all of these properties, newest first."""
    for meta in rest.history(main, filter=having_properties(properties)):
        commit = commit_info(meta)
        if commit.committed_at <= after:
            return
        yield commit


def _merge(
    rest: NessieRest,
    main: tuple[str, str],
    branch: str,
    head: str,
    meta: dict[str, Any],
    expected: Mapping[tuple[str, ...], Any],
    *,
    dry: bool,
) -> dict[str, Any]:
    try:
        return rest.merge(*main, branch, head, meta, expected, dry)
    except NessieRequestRefused as error:
        if error.status == 404:
            raise NoSuchBranch(f"the branch {branch} does not exist") from error
        if error.status == 409:  # a real conflict comes as an answer; this is contention at main
            raise ServiceUnavailable("main moved during the merge") from error
        raise
