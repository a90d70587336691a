"""The commit log: branches and commits over all tables of a catalog.

Iceberg's own branches belong to single tables. The log records which snapshots of which tables belong together. Its
commits form a graph, as in a versioned catalog. `log_table` stores its heads in the catalog, and `commit_pages` stores
earlier commits in files.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from lakehouse.catalog import BranchInfo
from lakehouse.iceberg_catalog.commit_pages import CommitPages
from lakehouse.iceberg_catalog.log_commits import (
    HIDDEN,
    MAIN,
    PENDING,
    LogCommit,
    LoggedVersion,
    LogState,
    half_ref,
    now,
    pending_ref,
    versions_differ,
)
from sluice.errors import CatalogRefused, NoSuchBranch


class NoSuchCommit(CatalogRefused):
    """Raised when the log has no commit of a hash: there never was one, or it was deleted with its branch."""


@dataclass(frozen=True)
class CommitLog:
    """The log at one reading."""

    branches: Mapping[str, str]
    """Head of each branch."""
    heads: Mapping[str, LogCommit]
    """Commits of the heads, by their hashes."""
    pages: CommitPages
    states: dict[str, LogState] = field(default_factory=dict, repr=False)
    """Cache of computed states, by hash."""

    def head(self, branch: str) -> str:
        """Return the head of a branch.

        Raises:
            NoSuchBranch: there is none of this name.
        """
        if branch not in self.branches:
            raise NoSuchBranch(f"the branch {branch} does not exist")
        return self.branches[branch]

    def find(self, hash: str) -> LogCommit | None:
        """Return the commit of a hash, or None if the log has none."""
        if hash in self.heads:
            return self.heads[hash]
        page = self.pages.read(hash)
        return page.commits[-1] if page else None

    def commit(self, hash: str) -> LogCommit:
        """Return the commit of a hash.

        Raises:
            NoSuchCommit: there is none.
        """
        commit = self.find(hash)
        if commit is None:
            raise NoSuchCommit(f"the commit log has no commit {hash[:12]}")
        return commit

    def ancestors(self, hash: str) -> Iterator[LogCommit]:
        """Yield the commit of a hash and its ancestors, newest first."""
        while hash:
            page = None if hash in self.heads else self.pages.read(hash)
            commits = page.commits if page else [self.commit(hash)]
            yield from reversed(commits)
            hash = commits[0].parent

    def contains(self, head: str, hash: str) -> bool:
        """Return True if a hash is in the history of another, or is the same."""
        wanted = self.find(hash)
        later = takewhile(lambda commit: wanted is not None and commit.number >= wanted.number, self.ancestors(head))
        return any(commit.hash == hash for commit in later)

    def next_commit(self, branch: str, **fields: Any) -> LogCommit:
        """Return a commit on top of a branch."""
        parent = self.commit(self.head(branch))
        fork = "" if branch == MAIN else parent.fork or parent.hash
        return LogCommit(parent=parent.hash, number=parent.number + 1, fork=fork, at=now(), **fields)

    def state(self, hash: str) -> LogState:
        """Return the tables and namespaces at a hash."""
        later: list[LogCommit] = []
        state = LogState()
        for commit in self.ancestors(hash):
            known = self._known_state(commit)
            if known is not None:
                state = known
                break
            later.append(commit)
        for commit in reversed(later):
            state = state.after(commit)
        self.states[hash] = state
        return state

    def _known_state(self, commit: LogCommit) -> LogState | None:
        if commit.hash in self.states:
            return self.states[commit.hash]
        page = self.pages.read(commit.hash) if commit.is_first_of_page and commit.hash not in self.heads else None
        return page.state if page else None

    def tables(self, hash: str) -> Mapping[str, LoggedVersion]:
        """Return the versions of all tables at a hash."""
        return self.state(hash).tables

    def namespaces(self, hash: str) -> dict[str, dict[str, str]]:
        """Return the namespaces that commits up to a hash created."""
        return self.state(hash).namespaces

    def changes(self, base: str, head: str) -> dict[str, tuple[LoggedVersion | None, LoggedVersion | None]]:
        """Return the versions before and after of each table that differs between two hashes."""
        before, after = self.tables(base), self.tables(head)
        pairs = {name: (before.get(name), after.get(name)) for name in sorted({*before, *after})}
        return {name: (a, b) for name, (a, b) in pairs.items() if versions_differ(a, b)}

    def own_commits(self, head: str) -> list[LogCommit]:
        """Return the commits of a branch that are not main's, newest first."""
        return list(takewhile(lambda commit: commit.fork, self.ancestors(head)))

    def fork_point(self, head: str) -> str:
        """Return the newest hash that the history of `head` shares with main, including hashes that main merged."""
        own = self.own_commits(head)
        if not own:
            return head
        base = self.commit(own[0].fork)
        since = takewhile(lambda commit: commit.number > base.number, self.ancestors(self.head(MAIN)))
        merged = {commit.merged for commit in since}
        return next((commit.hash for commit in own if commit.hash in merged), base.hash)

    def publication_of(self, head: str, since: str) -> LogCommit | None:
        """Return the commit on main, after the hash `since`, that merged a hash."""
        merged = self.find(head)
        fork = self.find(merged.fork) if merged and merged.fork else None
        for commit in self.ancestors(self.head(MAIN)):
            if commit.merged == head:
                return commit
            if commit.hash == since or (fork and commit.number <= fork.number):
                return None
        return None

    def branch_infos(self, prefix: str) -> list[BranchInfo]:
        """Return the branches whose name begins with a prefix, except those that the log uses internally."""
        named = {name: head for name, head in self.branches.items() if name.startswith(prefix)}
        shown = {name: self.commit(head) for name, head in named.items() if not name.startswith(HIDDEN)}
        return [BranchInfo(name, each.hash, each.at, each.properties) for name, each in shown.items()]

    def pending(self) -> list[LogCommit]:
        """Return the publications that may be unfinished."""
        return [self.commit(head) for name, head in self.branches.items() if name.startswith(PENDING)]

    def pending_of(self, head: str) -> LogCommit | None:
        """Return the pending publication of a hash, or None."""
        pending = self.branches.get(pending_ref(head))
        return self.commit(pending) if pending else None

    def half_of(self, head: str) -> LogCommit | None:
        """Return the publication of a hash that ended half done, or None."""
        half = self.branches.get(half_ref(head))
        return self.commit(half) if half else None

    def unneeded(self, own: Sequence[LogCommit]) -> list[str]:
        """Return the commits of a deleted branch that no other branch of the same base has in its history."""
        forks, needed = {commit.fork for commit in own}, set[str]()
        for head in (each for each in self.heads.values() if each.fork in forks):
            with suppress(NoSuchCommit):  # another process deletes this branch too
                needed |= {each.hash for each in takewhile(lambda commit: commit.fork, self.ancestors(head.hash))}
        return [commit.hash for commit in own if commit.hash not in needed]
