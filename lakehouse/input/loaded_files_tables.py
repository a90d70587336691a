"""Tables of the index of loaded files: their queries, and the conversion between their rows and loads."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sluice.contracts.selected_input import ManifestRef
from sluice.input.held_files import LoadedFile
from sluice.input.manifest import InputManifest
from sluice.input.publications import InputRecord, effects_of_rollback
from sluice.pipeline.scope import LoadScope

VERSION = 8
"""Version of the tables below. An index of another version is rebuilt."""
TABLES = ("commits", "runs", "inputs", "files", "copies")
_SCHEMA = """
CREATE TABLE commits (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE);
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, run_id TEXT NOT NULL, workflow_id TEXT NOT NULL,
    pipeline TEXT NOT NULL, at TEXT NOT NULL, tables TEXT NOT NULL, rolled_back TEXT NOT NULL,
    replaces TEXT NOT NULL DEFAULT '', order_matters INTEGER NOT NULL DEFAULT 0,
    in_effect INTEGER NOT NULL DEFAULT 1, location TEXT NOT NULL, manifest TEXT NOT NULL, problem TEXT NOT NULL
);
CREATE INDEX runs_by_id ON runs (run_id);
CREATE TABLE inputs (
    digest TEXT NOT NULL, seq INTEGER NOT NULL, path_scope TEXT NOT NULL, content_scope TEXT NOT NULL,
    PRIMARY KEY (digest, seq)
) WITHOUT ROWID;
CREATE INDEX runs_with_problems ON runs (seq) WHERE problem != '';
CREATE INDEX rollbacks ON runs (seq) WHERE rolled_back != '[]';
CREATE TABLE files (
    table_name TEXT NOT NULL, identity TEXT NOT NULL, seq INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL,
    path_scope TEXT NOT NULL, content_scope TEXT NOT NULL,
    PRIMARY KEY (table_name, identity, seq, path_scope, content_scope)
) WITHOUT ROWID;
CREATE TABLE copies (
    table_name TEXT NOT NULL, identity TEXT NOT NULL, seq INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL,
    path_scope TEXT NOT NULL, content_scope TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    PRIMARY KEY (table_name, path, identity, path_scope, content_scope)
) WITHOUT ROWID;
CREATE VIEW left_out AS
SELECT c.table_name, c.identity, CASE WHEN latest.in_effect THEN c.seq ELSE c.first_seq END AS seq, c.path, c.size,
    c.path_scope, c.content_scope
FROM copies c JOIN runs latest ON latest.seq = c.seq;
CREATE INDEX files_by_path ON files (path);
CREATE INDEX files_by_run ON files (seq);
"""
LOAD_COLUMNS = "f.table_name, f.path, r.run_id, r.workflow_id, r.hash, r.at, f.identity, f.path_scope, f.content_scope"
"""Columns of a load, in the order that `loaded_file` expects."""

FIND = f"""
SELECT f.seq, {LOAD_COLUMNS}, '{{0}}' = 'left_out' FROM {{0}} f JOIN runs r ON r.seq = f.seq
WHERE f.table_name = ? AND r.in_effect AND f.{{1}} IN ({{2}})
"""
"""Query for the loads, or the files that were left out, with these values of a column."""
AFTER_COMMIT = "f.seq > coalesce((SELECT seq FROM commits WHERE hash = ?), -1)"
"""Condition that selects the files loaded after a commit, or all files if the index does not contain it."""
REPLACING = f"""
f.seq IN (SELECT f.seq FROM runs f WHERE f.in_effect AND f.order_matters AND f.pipeline = ? AND {AFTER_COMMIT})
AND +f.table_name IN ({{}})
"""
"""Condition that selects the files that runs of a pipeline loaded into tables after a commit, replacing rows.

`+` keeps SQLite from the index of tables: the query begins with the few runs, and not with all files of a table.
"""
_LATER = f"""
SELECT {LOAD_COLUMNS} FROM files f JOIN runs r ON r.seq = f.seq
WHERE f.seq > (SELECT seq FROM commits WHERE hash = :commit) AND f.table_name = :table AND f.identity != :identity
AND r.in_effect AND f.content_scope = :content_scope AND (f.path_scope IN ('', :path_scope) OR :path_scope = '')
ORDER BY f.seq, f.path LIMIT 1
"""
"""Query for the first load of other content after a commit, in the scope of a file."""
REPLACED = """
SELECT 1 FROM runs r JOIN runs l ON l.pipeline = r.pipeline AND l.seq > r.seq AND l.in_effect
JOIN files later ON later.seq = l.seq
WHERE r.hash = :commit AND r.pipeline = :pipeline
AND later.table_name IN (SELECT table_name FROM files WHERE seq = r.seq)
"""
"""Query that returns a row if a later run of the pipeline loaded files into the tables of a run."""
REPLACEABLE = """
SELECT DISTINCT later.table_name FROM runs r JOIN runs l ON l.seq > r.seq AND l.in_effect AND l.replaces != ''
JOIN files later ON later.seq = l.seq
WHERE r.hash = :commit AND later.table_name IN (SELECT table_name FROM files WHERE seq = r.seq)
AND (l.pipeline != r.pipeline OR (later.path_scope = '' AND later.content_scope = ''))
"""
"""Query for the tables of a run in which a later load may have replaced rows.

Runs of other partitions of the same pipeline do not count: one that removes rows of this partition is stopped.
"""
REPLACED_IN_SCOPE = f"{REPLACED} AND later.path_scope = :path_scope AND later.content_scope = :content_scope"
FIND_INPUTS = """
SELECT r.tables, '', '', r.run_id, r.workflow_id, r.hash, r.at, i.digest, i.path_scope, i.content_scope
FROM inputs i JOIN runs r ON r.seq = i.seq WHERE r.pipeline = ? AND r.in_effect AND i.digest IN ({})
ORDER BY r.seq DESC
"""
"""Query for the runs in effect of a pipeline that published some inputs, latest first."""
FIND_SCOPES = """
SELECT r.tables, '', '', r.run_id, r.workflow_id, r.hash, r.at, i.digest, i.path_scope, i.content_scope
FROM inputs i JOIN runs r ON r.seq = i.seq WHERE r.pipeline = ? AND r.in_effect AND i.content_scope != ''
ORDER BY r.seq
"""
"""Query for the runs in effect of a pipeline that loaded a partition of the content, oldest first."""
_ADD_INPUT = "INSERT OR REPLACE INTO inputs (digest, seq, path_scope, content_scope) VALUES (?, ?, ?, ?)"
_LATEST_OF_PATH = """
SELECT f.identity, f.seq FROM {} f JOIN runs r ON r.seq = f.seq WHERE r.in_effect AND f.table_name = :table
AND f.path = :path AND f.path_scope = :path_scope AND f.content_scope = :content_scope AND f.seq < :seq
"""
_ADD_FILE = """
INSERT OR IGNORE INTO files (table_name, identity, seq, path, size, path_scope, content_scope)
VALUES (:table, :identity, :seq, :path, :size, :path_scope, :content_scope)
"""
_ADD_COPY = f"""
INSERT INTO copies (table_name, identity, seq, path, size, path_scope, content_scope, first_seq)
VALUES (:table, :identity, :seq, :path, :size, :path_scope, :content_scope, :seq)
ON CONFLICT (table_name, path, identity, path_scope, content_scope) DO UPDATE SET
seq = max(seq, excluded.seq), first_seq = CASE
    WHEN identity IS (
        SELECT identity
        FROM ({_LATEST_OF_PATH.format("files")} UNION ALL {_LATEST_OF_PATH.format("left_out")})
        ORDER BY seq DESC LIMIT 1
    ) THEN first_seq ELSE max(first_seq, excluded.seq) END
"""
"""Statement that adds a file that a run left out.

Each run leaves out most files of a folder again. The table has one row for each content of a path, with the latest run
that left it out, and the first one since the path had other content. If the latest one is rolled back, the first one
counts. The latest one counts after the table was dropped and created again.
"""


@dataclass(frozen=True)
class IndexedCommit:
    """One commit of main, as input of the index."""

    hash: str
    at: str
    record: InputRecord | None = None
    manifest: InputManifest | None = None
    problem: str = ""
    """Reason why the manifest cannot be read."""


def create_tables(database: sqlite3.Connection) -> None:
    """Create the tables, unless another process was first. Tables of another version are dropped."""
    database.execute("BEGIN IMMEDIATE")
    if database.execute("PRAGMA user_version").fetchone() != (VERSION,):  # no other process was first
        database.execute("DROP VIEW IF EXISTS left_out")
        for table in TABLES:
            database.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")


def add_commit(database: sqlite3.Connection, commit: IndexedCommit) -> None:
    """Add a commit of main, its run and its files."""
    seq = database.execute("INSERT INTO commits (hash) VALUES (?)", [commit.hash]).lastrowid
    assert seq is not None
    record = commit.record
    if record is None:
        return
    manifest = record.manifest or ManifestRef(location="", digest="")
    database.execute(
        "INSERT INTO runs (seq, hash, run_id, workflow_id, pipeline, at, tables, rolled_back, location, manifest, "
        "problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            seq,
            commit.hash,
            record.run_id,
            record.workflow_id,
            record.pipeline,
            commit.at,
            json.dumps(record.tables),
            json.dumps(record.rolled_back),
            manifest.location,
            manifest.digest,
            commit.problem,
        ],
    )
    if commit.manifest:
        add_manifest(database, seq, commit.manifest)
    elif record.digest:
        database.execute(_ADD_INPUT, [record.digest, seq, "", record.scope])
    if record.rolled_back:
        rows = database.execute("SELECT run_id, rolled_back FROM runs WHERE rolled_back != '[]'").fetchall()
        rollbacks = {run_id: json.loads(runs) for run_id, runs in rows if run_id != record.run_id}
        for run_id, in_effect in effects_of_rollback(record.rolled_back, rollbacks):
            database.execute("UPDATE runs SET in_effect = ? WHERE run_id = ?", [int(in_effect), run_id])


def add_manifest(database: sqlite3.Connection, seq: int, manifest: InputManifest) -> None:
    """Add the content of a run's manifest: its inputs, and the files that it loaded into its tables, or left out."""
    header = manifest.header
    database.execute(
        "UPDATE runs SET problem = '', tables = ?, replaces = ?, order_matters = ? WHERE seq = ?",
        [json.dumps(header.tables), header.replaces, int(header.order_matters), seq],
    )
    inputs = [[each.digest, seq, each.scope.path, each.scope.content] for each in manifest.inputs]
    database.executemany(_ADD_INPUT, inputs)
    for statement, is_loaded in ((_ADD_FILE, True), (_ADD_COPY, False)):
        database.executemany(
            statement,
            (
                {
                    "table": table,
                    "identity": file.identity,
                    "seq": seq,
                    "path": file.path,
                    "size": file.size,
                    "path_scope": file.scope.path,
                    "content_scope": file.scope.content,
                }
                for table in header.tables
                for file in manifest.files
                if (file.left_out is None) == is_loaded
            ),
        )


def loaded_file(fields: Sequence[Any]) -> LoadedFile:
    """Return the load that a row of these columns describes."""
    table, path, run_id, workflow_id, commit, at, identity, path_scope, content_scope, *left_out = fields
    scope = LoadScope(path=path_scope, content=content_scope)
    return LoadedFile(table, path, run_id, workflow_id, commit, at, identity, scope, was_left_out=any(left_out))


def read_later(database: sqlite3.Connection, load: LoadedFile, scope: LoadScope) -> LoadedFile | None:
    """Return the first load in effect of other content after a load, in its table and in a scope."""
    given = {"table": load.table, "commit": load.commit, "identity": load.identity}
    given |= {"path_scope": scope.path, "content_scope": scope.content}
    row = database.execute(_LATER, given).fetchone()
    return loaded_file(row) if row else None
