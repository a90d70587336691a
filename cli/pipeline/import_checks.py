"""The command `import`: turn tests of dbt, SodaCL or Great Expectations into checks, and report the rest."""

import io
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from cli.exit_codes import WRONG_USE
from cli.pipeline.import_files import read_files
from cli.pipeline.import_process import run_limited
from importing.project import ImportOptions, import_files
from importing.sql_text import dialects
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion, table_name
from sluice.located_yaml import UNREADABLE
from sluice.sizes import format_count

_WIDTH = 160


class Scope(str, Enum):
    """Scope of imported checks: the whole table, or the rows that a run adds."""

    table = "table"
    added = "added"


def import_file(
    path: Annotated[
        Path, typer.Argument(help="A dbt property file, SodaCL, a Great Expectations suite, or a project's folder.")
    ],
    namespace: Annotated[
        str | None, typer.Option(help="The namespace of the tables of dbt's models or Soda's data sets.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table that a suite of Great Expectations checks.")] = None,
    scope: Annotated[Scope, typer.Option(help="Check the whole table, or the rows that each run adds.")] = Scope.table,
    dialect: Annotated[
        str | None, typer.Option(help="The dialect of the SQL in the files, such as snowflake; Spark's by default.")
    ] = None,
    var: Annotated[list[str] | None, typer.Option(help="A variable of dbt, as NAME=VALUE; repeatable.")] = None,
    target: Annotated[str | None, typer.Option(help="The name of dbt's target, such as prod.")] = None,
) -> None:
    """Turn the tests of dbt, SodaCL or Great Expectations into checks, as YAML; report the rest with its reasons."""
    try:
        options = _import_options(namespace, table, scope, dialect, var or [], target)
        text, report = run_limited(_import, path, options)
    except InvalidPipeline as error:
        print(f"sluice: {error}", file=sys.stderr)
        raise typer.Exit(WRONG_USE) from error
    print(text, end="")
    print(report, file=sys.stderr)


def _import(path: Path, options: ImportOptions) -> tuple[str, str]:
    """Return the checks of files as YAML, and the report of what was carried over and what was not."""
    imported = import_files(read_files(path), options, lenient=path.is_dir())
    left = [each for each in imported.left if not each.inactive]
    tests = format_count(imported.carried_over + len(left), "test")
    listed = [check for checks in imported.checks.values() for check in checks]
    tables = format_count(len(imported.checks), "table")
    report = [
        f"# {imported.carried_over:,} of {tests} carried over, as {format_count(len(listed), 'check')} of {tables}"
    ]
    queries = sum("sql" in check for check in listed)
    if options.scope == Scope.added.value and queries:
        report.append(f"# {format_count(queries, 'check')} `sql` read the whole table in spite of --scope added")
    report += [f"# {'not active' if each.inactive else 'not carried over'}: {each}" for each in imported.left]
    return checks_as_yaml(imported.checks) if imported.checks else "", "\n".join(report)


def _import_options(
    namespace: str | None,
    table: str | None,
    scope: Scope,
    dialect: str | None,
    variables: list[str],
    target: str | None,
) -> ImportOptions:
    for option, name in (("--table", table), ("--namespace", namespace and f"{namespace}.t")):
        try:
            table_name(name or "a.b")
        except InvalidPipeline as error:
            raise InvalidPipeline(f"{option}: {error}") from error
    if dialect is not None and dialect.lower() not in dialects():
        raise InvalidPipeline(
            f"--dialect {dialect[:40]!r} is not known{suggestion(dialect, dialects())}: {', '.join(dialects())}"
        )
    pairs = dict(each.partition("=")[::2] for each in variables)
    if wrong := next((each for each in variables if "=" not in each), None):
        raise InvalidPipeline(f"--var {wrong[:60]!r}: write NAME=VALUE")
    try:
        values = {name: YAML(typ="safe").load(value) if value else "" for name, value in pairs.items()}
    except UNREADABLE as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidPipeline(f"--var: a value is not valid YAML: {why}") from error
    return ImportOptions(namespace, table, scope.value, dialect.lower() if dialect else None, values, target)


def checks_as_yaml(checks: dict[str, list[dict[str, Any]]]) -> str:
    """Return checks as YAML for a pipeline file, each query as a block of its own lines."""
    listed = {name: {"checks": [_as_written(each) for each in of_table]} for name, of_table in checks.items()}
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = _WIDTH
    text = io.StringIO()
    yaml.dump({"tables": listed}, text)
    return text.getvalue()


def _as_written(check: dict[str, Any]) -> dict[str, Any]:
    ((name, parameters),) = check.items()
    if "query" not in parameters:
        return check
    block = CommentedMap(parameters)
    block.fa.set_block_style()
    return {name: block}
