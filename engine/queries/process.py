"""The process of one query, which the fork server forks: it runs a person's SQL within limits, and ends.

It also parses SQL that a person wrote, since deeply nested SQL can crash the process that parses it. It compares the
rows of two versions of a table, and reads rows that DuckDB cannot read: both may need much memory.
"""

import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from engine.duckdb_session import DuckDBSession
from engine.private_files import write_private
from engine.queries.limits import limit_this_process
from engine.queries.row_diff import RowDiff, register_partitions
from engine.queries.specification import QueryAnswer, QuerySpecification
from engine.queries.sql import NESTED, read_rows, tables_in
from sluice.errors import InvalidInput

ANSWER = "answer.json"
_MAX_SPILL = "16GB"
"""Maximum size of the data that a query may spill to disk."""
_MEMORY_ERRORS = (duckdb.OutOfMemoryException, pa.ArrowMemoryError)
_NO_THREAD = "can't start new thread"
"""Message of Python when it cannot get memory for the stack of a thread."""
_ERROR_NAME = re.compile(r"^([A-Z][A-Za-z]+ )+Error: ")
"""DuckDB's name of an error before its message, such as `Binder Error: `. It means nothing to a person."""
_OUT_OF_MEMORY = ("bad_alloc", "allocat", "Cannot allocate memory", "Out of Memory", "Resource temporarily")
"""Parts of the messages of C++, DuckDB, Arrow and the system when they cannot get memory or start threads."""


def main(text: str) -> None:
    """Answer the query of a specification, and write the answer into its folder."""
    query = QuerySpecification.model_validate_json(text)
    limit_this_process(query.memory_limit, query.seconds, query.threads)
    try:
        answer = _answer(query).model_dump_json()
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _NO_THREAD not in str(error):
            raise
        answer = QueryAnswer(out_of_memory=True).model_dump_json()
    write_private(Path(query.folder) / ANSWER, answer)


def _answer(query: QuerySpecification) -> QueryAnswer:
    """Return the answer, or the reason why there is none."""
    try:
        return _run(query)
    except InvalidInput as error:
        return QueryAnswer(refused=str(error))
    except RecursionError:
        return QueryAnswer(refused=NESTED)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        message = str(error).split("\n\n")[0]
        out_of_memory = isinstance(error, _MEMORY_ERRORS) or any(each in message for each in _OUT_OF_MEMORY)
        return QueryAnswer(out_of_memory=True) if out_of_memory else QueryAnswer(refused=_ERROR_NAME.sub("", message))


def _run(query: QuerySpecification) -> QueryAnswer:
    if query.kind == "parse":
        return QueryAnswer(tables=tables_in(query.sql))
    if query.kind == "write_rows":
        reader = importlib.import_module(query.reader)
        return QueryAnswer(written=reader.write_rows(query.request, Path(query.folder)))
    with _tables(query) as connection:
        if query.diff:
            register_partitions(connection, query.diff)
            return QueryAnswer(differences=RowDiff(connection, query.diff, query.io).answer())
        return QueryAnswer(rows=read_rows(connection, query.sql))


@contextmanager
def _tables(query: QuerySpecification) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a locked database with the tables of a query, and nothing else."""
    rows = {name: _map_rows(paths) for name, paths in query.rows.items()}
    with (
        DuckDBSession(query.memory, Path(query.folder), query.threads, query.io, _MAX_SPILL) as session,
        session.tables(query.files, rows) as connection,
    ):
        yield connection


def _map_rows(paths: Sequence[str]) -> pa.Table:
    """Return the rows of Arrow files, mapped into memory, and remove the files."""
    parts = [pa.ipc.open_file(pa.memory_map(path)).read_all() for path in paths]
    for path in paths:
        with suppress(OSError):
            Path(path).unlink()
    return pa.concat_tables(parts, promote_options="permissive")
