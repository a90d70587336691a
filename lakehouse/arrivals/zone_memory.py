"""Memory of a landing zone between two listings: the state and the status of each file."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from lakehouse.arrivals.listing_order import order_files
from lakehouse.arrivals.zone_database import ZoneDatabase
from lakehouse.arrivals.zone_files import MarkedFile, RememberedFile, row_of
from lakehouse.source_files.arriving import ArrivingFile
from sluice.arrivals.batching import WaitingFile
from sluice.contracts.arrivals import FileStatus, other_content_in
from sluice.errors import ServiceUnavailable

_AT_ONCE = 400
"""Maximum number of files in one statement: SQLite before 3.32 allows 999 parameters."""
_TRY_AGAIN = 600.0
"""Wait before a refused file is tried again, in seconds: the error may have been temporary."""
_WAITING = "path, size, arrived_at, changed_at, state, listed_at, written_at"
_RECORD = """
INSERT INTO files (path, folder, size, state, arrived_at, changed_at, listed_at, written_at, status, detail, listing,
    report, reported, try_at)
VALUES (:path, :folder, :size, :state, :now, :now, :now, :written_at, :status, :detail, :listing,
    :report, :reported, :try_at)
ON CONFLICT (path) DO UPDATE SET
    listing = :listing, changed_at = :now, listed_at = :now, written_at = :written_at, status = :status,
    detail = :detail, size = :size, state = :state,
    identity = '', finished = '', problem = '', try_at = :try_at, is_judged = 0, report = :report, reported = :reported,
    arrived_at = CASE WHEN status = 'waiting' THEN arrived_at ELSE :now END
    WHERE listing <= :listing AND state != :state
"""


def _id(database: sqlite3.Connection) -> str:
    ((id,),) = database.execute("SELECT value FROM details WHERE name = 'id'").fetchall()
    return str(id)


def _check_same(database: sqlite3.Connection, id: str) -> None:
    """Verify that a memory has its id: a new memory counts listings from the beginning.

    Raises:
        ServiceUnavailable: the memory was deleted and created again.
    """
    if _id(database) != id:
        raise ServiceUnavailable("the memory of the landing zone was deleted during a listing, which Sluice repeats")


def _parts(paths: Sequence[str]) -> list[Sequence[str]]:
    return [paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE)]


def _states(database: sqlite3.Connection, paths: Sequence[str]) -> dict[str, str]:
    marks = ", ".join("?" * len(paths))
    return dict(database.execute(f"SELECT path, state FROM files WHERE path IN ({marks})", list(paths)).fetchall())


class ZoneMemory(ZoneDatabase):
    """Files of one landing zone."""

    def record_listing(self, files: Iterable[ArrivingFile], now: float, pause: float = 0.0) -> None:
        """Record the present files, and delete those that are no longer listed.

        Files that were first listed together are in the order of their deliveries, and of their names within one. Only
        a pause of `pause` seconds separates two deliveries, because programs that copy many files at once finish them
        in any order.

        Only files whose state changed are written, so that a listing of many known files costs little. Entries of a
        later listing stay. Of two files with one path, the first counts: the second is the object `a.csv/` beside
        `a.csv`.

        Raises:
            ServiceUnavailable: this memory was deleted meanwhile.
        """
        with self._open() as database:
            listing = database.execute("INSERT INTO listings (at) VALUES (?)", [now]).lastrowid
            database.execute("COMMIT")
            id = _id(database)
        listed, paths = iter(files), set[int]()
        while block := list(islice(listed, _AT_ONCE)):  # no transaction is open while the store answers
            some = {file.path: file for file in reversed(block) if hash(file.path) not in paths}
            paths.update(map(hash, some))
            with self._open() as database:
                _check_same(database, id)
                known = _states(database, [*some])
                changed = [row_of(file, now, listing) for path, file in some.items() if known.get(path) != file.state]
                database.executemany(_RECORD, changed)
                database.execute("COMMIT")
        with self._open() as database:
            _check_same(database, id)
            known_paths = database.execute("SELECT path FROM files WHERE listing < ?", [listing])
            missing = [row for row in known_paths if hash(row[0]) not in paths]
            database.executemany("DELETE FROM files WHERE path = ?", missing)
            database.execute("DELETE FROM listings WHERE number < ?", [listing])
            order_files(database, listing, pause, now)
            database.execute("COMMIT")

    def record_files(self, asked: Sequence[str], there: Sequence[ArrivingFile], now: float, pause: float = 0.0) -> None:
        """Record the present state of the examined files, and delete the missing ones; other files stay as they are.

        The files are in the order described in `record_listing`.
        """
        with self._open() as database:
            listing = database.execute("INSERT INTO listings (at) VALUES (?)", [now]).lastrowid
            known = {path: state for some in _parts(asked) for path, state in _states(database, some).items()}
            database.executemany(
                _RECORD, [row_of(each, now, listing) for each in there if known.get(each.path) != each.state]
            )
            missing = known.keys() - {each.path for each in there}
            database.executemany("DELETE FROM files WHERE path = ?", [[path] for path in missing])
            database.execute("DELETE FROM listings WHERE number < ?", [listing])
            order_files(database, listing, pause, now)
            database.execute("COMMIT")

    def is_current(self, received: str) -> bool:
        """Return True if the mark of the latest received answer is of this memory, which then has the waiting files."""
        with self._open() as database:
            return received.rpartition(":")[0] == _id(database)

    def waiting_paths(self, limit: int) -> list[str]:
        """Return the paths of waiting files."""
        with self._open() as database:
            rows = database.execute("SELECT path FROM files WHERE status = 'waiting' LIMIT ?", [limit])
            return [path for (path,) in rows]

    def waiting(self, limit: int, *, with_manifest: bool = False) -> list[WaitingFile]:
        """Return the waiting files in order of arrival: all, or only those whose folder has its manifest."""
        only = "AND folder IN (SELECT folder FROM manifests)" if with_manifest else ""
        with self._open() as database:
            rows = database.execute(
                f"SELECT {_WAITING} FROM files WHERE status = 'waiting' {only} ORDER BY listed_at, path LIMIT ?",
                [limit],
            )
            return [WaitingFile(*row) for row in rows]

    def behind(self, details: Iterable[str]) -> list[WaitingFile]:
        """Return the files in a batch, or waiting for the end of one, whose status has one of these details."""
        with self._open() as database:
            select = f"SELECT {_WAITING} FROM files WHERE status = 'in a batch' AND detail = ?"
            blocks = [database.execute(select, [detail]).fetchall() for detail in details]
            return [WaitingFile(*row) for rows in blocks for row in rows]

    def waiting_folders(self) -> list[str]:
        """Return the folders with waiting files."""
        with self._open() as database:
            return [
                folder for (folder,) in database.execute("SELECT DISTINCT folder FROM files WHERE status = 'waiting'")
            ]

    def record_manifests(self, folders: Mapping[str, bool], now: float) -> dict[str, float]:
        """Record which folders have their manifest now; return since when each of these has had it."""
        with self._open() as database:
            missing = [[folder] for folder, is_there in folders.items() if not is_there]
            database.executemany("DELETE FROM manifests WHERE folder = ?", missing)
            present = [[folder, now] for folder, is_there in folders.items() if is_there]
            database.executemany("INSERT OR IGNORE INTO manifests (folder, at) VALUES (?, ?)", present)
            database.execute("COMMIT")
            return dict(database.execute("SELECT folder, at FROM manifests").fetchall())

    def latest_head(self) -> str:
        """Return the hash of main at the latest listing; empty before the first one."""
        with self._open() as database:
            row = database.execute("SELECT value FROM details WHERE name = 'head'").fetchone()
            return str(row[0]) if row else ""

    def recheck(self, rules: str, tables: str, head: str, now: float, *, is_another_history: bool) -> bool:
        """Reset files to waiting that may be judged differently now.

        Return True if these were all files, now or in an earlier listing since the last `confirm_recheck`.

        Args:
            rules: text of the rules that decide which files are refused or ignored. If it changed, those files wait
                again. Otherwise only files that were refused a while ago do, since the error may have been temporary.
            tables: names of the tables to load into. If they changed, all files wait again.
            head: the hash of main now.
            is_another_history: True if main was reset, or a table dropped: main may lack files that it had, and all
                files wait again.
        """
        with self._open() as database:
            details = dict(database.execute("SELECT name, value FROM details").fetchall())
            which = "is_judged" if details.get("rules") != rules else "status = 'refused' AND try_at <= :now"
            are_all = is_another_history or details.get("tables") not in (None, tables)
            if are_all:
                which = "is_judged OR status = 'loaded'"
            database.execute(
                f"UPDATE files SET status = 'waiting', detail = '', identity = '', is_judged = 0 WHERE {which}",
                {"now": now},
            )
            stated = [("rules", rules), ("tables", tables), ("head", head), *([("all", "")] if are_all else [])]
            database.executemany("INSERT OR REPLACE INTO details (name, value) VALUES (?, ?)", stated)
            database.execute("COMMIT")
            return are_all or "all" in details

    def confirm_recheck(self) -> None:
        """Record that the workflow of the zone gets the answer that all files wait again."""
        with self._open() as database:
            database.execute("DELETE FROM details WHERE name = 'all'")
            database.execute("COMMIT")

    def mark(self, files: Iterable[MarkedFile]) -> None:
        """Set the status of files, except those that changed since they were listed."""
        with self._open() as database:
            database.executemany(
                "UPDATE files SET status = :status, detail = :detail, identity = :identity, try_at = 0 "
                "WHERE path = :path AND changed_at = :changed_at",
                [file._asdict() for file in files],
            )
            database.execute("COMMIT")

    def keep_out(
        self, path: str, changed_at: float, status: FileStatus, detail: str, now: float, *, reports: bool
    ) -> None:
        """Record why a file is not loaded, unless it changed since it was listed.

        Args:
            reports: True to notify people, unless they were notified of the same reason for this file before.
        """
        with self._open() as database:
            database.execute(
                "UPDATE files SET status = :status, detail = :detail, identity = '', is_judged = 1, "
                "try_at = :try_at, reported = :detail, "
                "report = CASE WHEN :reports AND reported != :detail "
                "THEN (SELECT coalesce(max(number), 1) FROM listings) ELSE report END "
                "WHERE path = :path AND changed_at = :changed_at",
                {"path": path, "changed_at": changed_at, "status": status, "detail": detail, "reports": reports}
                | {"try_at": now + _TRY_AGAIN},
            )
            database.execute("COMMIT")

    def to_report(self, received: str, limit: int) -> tuple[list[tuple[str, str]], int, str]:
        """Return the files to report to people with their reasons, their total number, and a mark.

        They are returned again until the mark comes back as `received`, since an answer may be lost.

        Args:
            received: the mark of the latest answer that arrived. A mark of another worker's memory has no effect.
        """
        with self._open() as database:
            id = _id(database)
            # A memory that was deleted during a listing has no listing.
            ((number,),) = database.execute("SELECT coalesce(max(number), 0) FROM listings").fetchall()
            of, _, until = received.rpartition(":")
            if of == id and until.isdigit():
                database.execute("UPDATE files SET report = 0 WHERE report > 0 AND report <= ?", [int(until)])
                database.execute("COMMIT")
            ((total,),) = database.execute("SELECT count(*) FROM files WHERE report > 0").fetchall()
            rows = database.execute("SELECT path, detail FROM files WHERE report > 0 ORDER BY path LIMIT ?", [limit])
            return rows.fetchall(), total, f"{id}:{number}"

    def release_batches(self, held: Sequence[str], set_aside: Collection[str], kept_out: Sequence[str]) -> None:
        """Reset the files of batches that the zone no longer has to waiting: main is queried for them again.

        Args:
            set_aside: batches that a person set aside. Other content of their paths is loaded.
            kept_out: batches that wait for a person's decision. People are notified of files that wait for it because
                they have other content under a path of such a batch.
        """
        known = {*held, *(other_content_in(id) for id in held if id not in set_aside)}
        with self._open() as database:
            batches = database.execute("SELECT DISTINCT detail FROM files WHERE status = 'in a batch'").fetchall()
            database.executemany(
                "UPDATE files SET status = 'waiting', detail = '' WHERE status = 'in a batch' AND detail = ?",
                [row for row in batches if row[0] not in known],
            )
            database.executemany(
                "UPDATE files SET report = (SELECT coalesce(max(number), 1) FROM listings), reported = detail "
                "WHERE status = 'in a batch' AND detail = ? AND reported != detail",
                [[other_content_in(id)] for id in kept_out],
            )
            database.execute("COMMIT")

    def judge_again(self, paths: Sequence[str]) -> None:
        """Reset loaded and kept-out files with these paths to waiting: main lacks the content of their batches."""
        with self._open() as database:
            for some in _parts(paths):
                database.execute(
                    "UPDATE files SET status = 'waiting', detail = '', identity = '' WHERE (status = 'loaded' OR "
                    f"status IN ('ignored', 'refused') AND is_judged) AND path IN ({', '.join('?' * len(some))})",
                    list(some),
                )
            database.execute("COMMIT")

    def known(self, paths: Sequence[str]) -> dict[str, RememberedFile]:
        """Return the remembered files with these paths."""
        files: dict[str, RememberedFile] = {}
        with self._open() as database:
            for some in _parts(paths):
                rows = database.execute(
                    "SELECT path, size, arrived_at, status, detail, '', changed_at, identity, state, listed_at, "
                    f"written_at FROM files WHERE path IN ({', '.join('?' * len(some))})",
                    list(some),
                )
                files |= {row[0]: RememberedFile(*row) for row in rows}
        return files

    def counts(self) -> dict[str, int]:
        """Return the number of files by status."""
        with self._open() as database:
            counts = dict(database.execute("SELECT status, count(*) FROM files GROUP BY status").fetchall())
            (moved,) = database.execute("SELECT count(*) FROM moved").fetchone()
            return counts | ({"moved": moved} if moved else {})

    def in_batches(self) -> dict[str, int]:
        """Return the number of files with the status `in a batch`, by their detail."""
        select = "SELECT detail, count(*) FROM files WHERE status = 'in a batch' GROUP BY detail"
        with self._open() as database:
            return dict(database.execute(select).fetchall())

    def files(self, status: FileStatus | None, part: str, limit: int) -> list[RememberedFile]:
        """Return files whose path contains a text, of one status or of any. Those not loaded on main come first.

        Within each group, the latest come first.
        """
        with self._open() as database:
            rows = database.execute(
                "SELECT * FROM (SELECT path, size, arrived_at, status, detail, "
                "coalesce(nullif(problem, ''), finished), changed_at, identity FROM files "
                "WHERE :status IN ('', status) AND instr(path, :part) "
                "UNION ALL SELECT path, size, arrived_at, 'moved', detail, '', 0, '' FROM moved "
                "WHERE :status IN ('', 'moved') AND instr(path, :part)) "
                "ORDER BY status IN ('loaded', 'moved'), arrived_at DESC, path LIMIT :limit",
                {"status": status or "", "part": part, "limit": limit},
            )
            return [RememberedFile(*row) for row in rows]
