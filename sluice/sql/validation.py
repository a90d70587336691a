"""Validate that SQL of a pipeline computes from rows of the catalog's tables and reaches nothing else.

The lists name what a text may contain, not what it may not: kinds of statements, clauses (`_CLAUSES`), functions
(`sluice/sql/functions.py`) and names of tables. Text that does not parse is refused. The configuration of the Spark
session enforces the same a second time: Spark reads no paths in place of tables and replaces no variables.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from sluice.sql.functions import ALLOWED, CLAUSES, REFUSED, TYPES, words
from sluice.sql.tokens import SqlProblem, Token, position, tokens

_READING = (exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.Values)
_CLAUSES = (
    *_READING, exp.Alias, exp.Aliases, exp.All, exp.Any, exp.Between, exp.Binary, exp.Boolean, exp.Bracket, exp.CTE,
    exp.Cluster, exp.Column, exp.ColumnDef, exp.DataType, exp.DataTypeParam, exp.Distinct, exp.Distribute, exp.Escape,
    exp.Filter, exp.From, exp.Func, exp.Group, exp.GroupingSets, exp.Cube, exp.Rollup, exp.Having, exp.HexString,
    exp.Hint, exp.Identifier, exp.IgnoreNulls, exp.In, exp.Interval, exp.IntervalSpan, exp.Join, exp.JoinHint,
    exp.Kwarg, exp.Lambda, exp.Lateral, exp.Limit, exp.Literal, exp.National, exp.Null, exp.Offset, exp.Order,
    exp.Ordered, exp.Paren, exp.Pivot, exp.PropertyEQ, exp.RawString, exp.RespectNulls, exp.Sort,
    exp.Star, exp.Table, exp.TableAlias, exp.TableSample, exp.Tuple, exp.Unary, exp.Var, exp.Where, exp.Window,
    exp.WindowSpec, exp.With, exp.WithinGroup, exp.JSONPath, exp.JSONPathPart,
)  # fmt: skip
"""Parts of a query."""
_CHANGES = (
    exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Schema, exp.Partition, exp.When, exp.Whens,
    exp.ColumnConstraint, exp.CommentColumnConstraint, exp.NotNullColumnConstraint, exp.DefaultColumnConstraint,
    exp.Properties, exp.Property,
)  # fmt: skip
"""Parts of a statement that changes rows or creates a table, in addition to those of queries."""
_PROPERTIES = (
    exp.Property, exp.FileFormatProperty, exp.PartitionedByProperty, exp.SchemaCommentProperty,
    exp.PartitionedByBucket, exp.PartitionByTruncate,
)  # fmt: skip
"""Properties that a statement may set for a table that it creates."""
_KINDS = "DELETE FROM, UPDATE, MERGE INTO, INSERT, CREATE TABLE or ALTER TABLE"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_A_NAMESPACE = words(
    """
    avro binaryfile csv delta global_temp hive iceberg image information_schema jdbc json kafka libsvm noop orc parquet
    rate session spark_catalog system temp text xml
    """
)
"""Names before a table's name that make Spark read files, or something outside the catalog."""
_METADATA = re.compile(
    r"(?:branch|tag|snapshot_id|at_timestamp)_.*|all_(?:data_files|delete_files|entries|files|manifests)|changes|"
    r"data_files|delete_files|entries|files|history|manifests|metadata_log_entries|partitions|position_deletes|refs|"
    r"rewrite|snapshots"
)
"""Names after a table's name that make Iceberg read its metadata, another branch or another version."""
_QUERIES = words("select with ( values")
_STATEMENTS = words("delete update merge insert create alter with")
_STATEMENT_CLAUSES = words("columns column insert overwrite options tblproperties partitioned into")
_TRANSFORMS = words("bucket truncate years months days hours")
_ALTERATIONS = re.compile(
    r"(?:add|drop) columns? |rename column |(?:alter|change) (?:column )?|(?:add|drop|replace) partition field |"
    r"write (?:locally )?ordered by |write unordered|write distributed by partition|(?:set|drop) identifier fields |"
    r"(?:set|unset) tblproperties "
)
"""Allowed beginnings of the text after the name in `ALTER TABLE`."""


def parse_condition(text: str) -> exp.Expression | None:
    """Parse a text as one condition. Return None if it is something else.

    Raises:
        SqlProblem: it does not parse.
    """
    statements = _parsed(f"SELECT 1 WHERE ({text}\n)")
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        return None
    select = statements[0]
    where = select.args.get("where")
    others = [key for key, value in select.args.items() if value and key not in ("expressions", "where", "kind")]
    if where is None or others or not isinstance(where.this, exp.Paren):
        return None
    condition: exp.Expression = where.this.this
    return condition


def check_condition(text: str) -> None:
    """Make sure that a text is one condition on the columns of a row.

    Raises:
        SqlProblem: the text is something else.
    """
    listed = _tokens(text)
    condition = parse_condition(text)
    if condition is None:
        raise SqlProblem("it must be one condition")
    if condition.find(exp.Query):
        raise SqlProblem("it contains a query: write a check `sql`")
    if condition.find(exp.AggFunc) or condition.find(exp.Window):
        raise SqlProblem("it aggregates several rows: write a condition on a single row")
    _check_functions(text, listed, frozenset())
    _check_clauses(condition, _CLAUSES, "a condition")


def check_query(text: str, views: Sequence[str] = ()) -> None:
    """Make sure that a text is one query that reads tables of the catalog, and nothing else.

    Args:
        views: names without a namespace that it may read as well.

    Raises:
        SqlProblem: the text is something else.
    """
    listed = _tokens(text, _QUERIES, "it does not only read: it must be a query, SELECT ... or WITH ... SELECT ...")
    query = _only(_parsed(text), "query")
    if not isinstance(query, _READING):
        raise SqlProblem("it does not only read: it must be a query")
    _check_functions(text, listed, _own_names(query))
    _check_clauses(query, _CLAUSES, "a query that only reads")
    _check_tables(query, views)


def check_statement(text: str) -> None:
    """Make sure that a text is one statement that changes tables of the catalog, and nothing else.

    Raises:
        SqlProblem: the text is something else.
    """
    listed = _tokens(text, _STATEMENTS, f"this statement is not allowed: write {_KINDS}")
    if [token.word for token in listed[:2]] == ["alter", "table"]:
        _check_alteration(text, listed)
        return
    statement = _only(_parsed(text), "statement")
    is_table = isinstance(statement, exp.Create) and statement.args.get("kind") == "TABLE"
    if not isinstance(statement, exp.Insert | exp.Update | exp.Delete | exp.Merge) and not is_table:
        raise SqlProblem(f"this statement is not allowed: write {_KINDS}")
    inner = [node for node in statement.find_all(exp.DML, exp.DDL) if not isinstance(node, (*_READING, exp.Table))]
    if any(node is not statement and not isinstance(node.parent, exp.When) for node in inner):
        raise SqlProblem("it contains another statement: write one after the other")
    for format in statement.find_all(exp.FileFormatProperty):
        if format.name.lower() != "iceberg":
            raise SqlProblem(
                f"it creates a table in the format {format.name}: tables of the catalog have the format iceberg"
            )
    target = statement.this.find(exp.Table)
    own = _own_names(statement) | {target.name.lower() if target else ""}
    _check_functions(text, listed, (own - REFUSED.keys()) | _STATEMENT_CLAUSES | _TRANSFORMS)
    _check_clauses(statement, (*_CLAUSES, *_CHANGES), f"one {_KINDS} of a table in the catalog")
    _check_tables(statement, ())


def _check_alteration(text: str, listed: Sequence[Token]) -> None:
    """Check `ALTER TABLE` by its tokens, because the parser does not know Iceberg's additions to it."""
    rest, end = [token.word for token in listed], 2
    while end < len(listed) and (end == 2 or rest[end - 1] == "." or rest[end] == "."):
        end += 1
    parts = [token.word for token in listed[2:end] if token.word != "."]
    if any(token.word in ("at", "@") or "@" in token.word for token in listed[2:end]):
        raise SqlProblem("it names a branch: leave it out, since the SQL runs on the run's own branch")
    _check_table_name(parts, ())
    if not _ALTERATIONS.match(" ".join(rest[end:])):
        raise SqlProblem(
            "ALTER TABLE may add, drop, rename and alter columns, and set partition fields, the order of writes, "
            "identifier fields and properties"
        )
    if wrong := [token for token in listed[end:] if token.word in ("select", "location", ";")]:
        raise SqlProblem(f"{wrong[0].text!r} at {position(text, wrong[0].start)} is not part of ALTER TABLE")
    _check_functions(text, listed[end:], _STATEMENT_CLAUSES | _TRANSFORMS)


def _tokens(text: str, first: frozenset[str] = frozenset(), otherwise: str = "") -> list[Token]:
    """Return the tokens of a text, provided that Spark and the parser read the same ones.

    Args:
        first: the words that it may begin with; empty means any.
        otherwise: the message if it begins otherwise.
    """
    listed = tokens(text)
    if not listed:
        raise SqlProblem("it is empty")
    if first and listed[0].word not in first:
        raise SqlProblem(otherwise)
    for before, after in pairwise(listed):
        if after.kind == "text" and before.kind == "word" and before.word == "using":
            raise SqlProblem(f"USING at {position(text, before.start)} runs a script")
        if before.text + after.text == "|>" and before.start + 1 == after.start:
            raise SqlProblem(f"|> at {position(text, before.start)} cannot be checked: write a query without it")
    try:
        parsed = Spark().tokenize(text)
    except (TokenError, RecursionError) as error:
        raise SqlProblem(f"it does not parse: {first_error(error)}") from error
    quoted = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NATIONAL_STRING)
    ends = {token.end for token in parsed if token.token_type in quoted or text[token.end] == "`"}
    for token in listed:
        if token.kind in ("text", "name") and token.start + len(token.text) - 1 not in ends:
            raise SqlProblem(f"the quotes at {position(text, token.start)} can be read in two ways: write them plainly")
    if len(ends) != sum(token.kind in ("text", "name") for token in listed):
        raise SqlProblem("its quotes can be read in two ways: write them plainly")
    return listed


def _parsed(text: str) -> list[exp.Expression | None]:
    try:
        statements: list[exp.Expression | None] = [*sqlglot.parse(text, dialect=Spark)]  # type: ignore[list-item]
    except (ParseError, TokenError, RecursionError) as error:
        raise SqlProblem(f"it does not parse: {first_error(error)}") from error
    return statements


def _only(statements: Sequence[exp.Expression | None], kind: str) -> exp.Expression:
    if len(statements) != 1 or statements[0] is None:
        raise SqlProblem(f"it is not one {kind}")
    return statements[0]


def _check_clauses(tree: exp.Expression, allowed: tuple[type, ...], what: str) -> None:
    for node in tree.walk():
        is_other_property = isinstance(node, exp.Property) and type(node) not in _PROPERTIES
        is_other = isinstance(node, exp.Command | exp.Into | exp.Placeholder | exp.Parameter)
        if not isinstance(node, allowed) or is_other or is_other_property:
            if isinstance(node, exp.Version):
                raise SqlProblem("it names a version: leave it out, since the SQL reads the run's own branch")
            clause = re.sub(r"(?<!^)(?=[A-Z])", " ", type(node).__name__).lower()
            raise SqlProblem(f"{clause} is not part of {what}")
        if isinstance(node, exp.Anonymous) and node.name.lower() not in ALLOWED | _TRANSFORMS | REFUSED.keys():
            raise SqlProblem(f"{node.name!r} is not a function of Spark's that a pipeline may call")


def _check_tables(tree: exp.Expression, views: Sequence[str]) -> None:
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)} | {name.lower() for name in views}
    for table in tree.find_all(exp.Table):
        if table.find_ancestor(exp.Hint):
            continue
        if isinstance(table.this, exp.Func):
            if len(table.parts) > 1 or table.name.lower() in own:
                raise SqlProblem(f"{table.name!r} is not a function of Spark's")
            continue
        parts = [part.name for part in table.parts]
        if any("@" in part for part in parts):
            raise SqlProblem("it names a branch: leave it out, since the SQL runs on the run's own branch")
        if len(parts) > 1 or parts[0].lower() not in own:
            _check_table_name(parts, views)


def _check_table_name(parts: Sequence[str], views: Sequence[str]) -> None:
    name = ".".join(parts)
    if len(parts) < 2:
        also = f", or {' or '.join(map(repr, views))}" if views else ""
        raise SqlProblem(f"{name!r} is not a table of the catalog: write namespace.table{also}")
    if parts[0].lower() in _NOT_A_NAMESPACE or not all(_PLAIN.fullmatch(part) for part in parts):
        raise SqlProblem(f"{name!r} is not a table of the catalog: paths, views and other catalogs are not read")
    if len(parts) > 2 and _METADATA.fullmatch(parts[-1].lower()):
        raise SqlProblem(f"{name!r} is metadata or a version of a table: only the rows of tables are read")


def _own_names(tree: exp.Expression) -> frozenset[str]:
    """Return the names that a statement defines itself and may write before a bracket: `t(a, b)`."""
    return frozenset(alias.name.lower() for alias in tree.find_all(exp.TableAlias)) - REFUSED.keys()


def _check_functions(text: str, listed: Sequence[Token], own: frozenset[str] | set[str]) -> None:
    for name, is_qualified in _called(listed):
        where = position(text, name.start)
        if reason := REFUSED.get(name.word):
            raise SqlProblem(f"{name.word!r} at {where} may not be called: {reason}")
        if name.word in own or (name.kind == "word" and name.word in CLAUSES | TYPES):
            continue
        if name.word not in ALLOWED or is_qualified:
            raise SqlProblem(f"{name.word!r} at {where} is not a function of Spark's that a pipeline may call")


def _called(listed: Sequence[Token]) -> Iterator[tuple[Token, bool]]:
    """Yield each name before a bracket or called without one, and whether a namespace stands before it."""
    is_hint = False
    for index, token in enumerate(listed):
        is_hint = token.text == "/*+" or (is_hint and token.text != "*/")
        before = listed[index - 1].text if index else ""
        after = listed[index + 1].text if index + 1 < len(listed) else ""
        is_account = token.kind == "word" and token.word in ("current_user", "session_user") and before != "."
        if token.kind in ("word", "name") and (after == "(" or is_account) and not is_hint:
            yield token, before == "."


_MISSING_PART = re.compile("required keyword: ")
_TOKEN_GIVEN = re.compile(" but got <token .*")
"""Words of the parser about its own classes."""


def first_error(error: Exception) -> str:
    """Return the first error of the parser, with its line and column."""
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    listed = getattr(error, "errors", None)
    if listed:
        first = listed[0]
        near = first["highlight"] or first["start_context"][-20:]
        description = first["description"].rstrip(".").lower()
        description = "a part is missing" if _MISSING_PART.match(description) else _TOKEN_GIVEN.sub("", description)
        return f"{description} near {near!r}, line {first['line']}, column {first['col']}"
    return str(error).split("\n", maxsplit=1)[0]
