"""Importing files: which tool a file is of, and the checks of all of them together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.errors import InvalidPipeline
from sluice.importing.dbt_import import DbtImport
from sluice.importing.dbt_macros import DbtMacros
from sluice.importing.dbt_project import read_project
from sluice.importing.great_expectations import import_suite, is_suite
from sluice.importing.imported import ImportedChecks, SourceText
from sluice.importing.jinja_values import DbtValues
from sluice.importing.soda import SodaImport

_DBT_KEYS = ("models", "seeds", "snapshots", "sources", "unit_tests")
_SODA_HEADERS = ("checks for ", "filter ", "configurations for ", "for each dataset", "for each table")


@dataclass(frozen=True)
class ImportOptions:
    """What the files do not say."""

    namespace: str | None = None
    """The namespace of the tables of dbt's models, of Soda's data sets and of suites without a table."""
    table: str | None = None
    """The table that a suite is about."""
    scope: str = "table"
    """Which rows checks are about; in dbt, Great Expectations and Soda, all rows of the table."""
    dialect: str | None = None
    """The dialect of the SQL in the files; None for Spark's."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """dbt's variables, beside those of `dbt_project.yml`."""
    target: str | None = None
    """The name of dbt's target, such as `prod`."""


@dataclass(frozen=True)
class Files:
    """The files of an import, by what they are."""

    dbt: list[SourceText] = field(default_factory=list)
    soda: list[SourceText] = field(default_factory=list)
    suites: list[SourceText] = field(default_factory=list)
    macros: list[SourceText] = field(default_factory=list)
    singular: list[SourceText] = field(default_factory=list)
    projects: list[SourceText] = field(default_factory=list)
    others: list[SourceText] = field(default_factory=list)


def sort_files(files: Sequence[SourceText]) -> Files:
    """Tell by their content and folder what files are."""
    sorted_files = Files()
    for file in files:
        _list_for(file, sorted_files).append(file)
    return sorted_files


def _list_for(file: SourceText, files: Files) -> list[SourceText]:
    name, folders = file.path.rpartition("/")[2], file.path.split("/")[:-1]
    if name.endswith(".sql"):
        if "macros" in folders or "generic" in folders or "{% test" in file.text or "{%- test" in file.text:
            return files.macros
        return files.singular if folders and "tests" in folders else files.others
    if name.endswith(".json"):
        return files.suites if '"expectations"' in file.text else files.others
    if name in ("dbt_project.yml", "dbt_project.yaml"):
        return files.projects
    lines = [line for line in file.text.splitlines() if line[:1] not in (" ", "#", "-", "\t", "")]
    if any(line.strip("'\"").startswith(_SODA_HEADERS) for line in lines):
        return files.soda
    keys = {line.partition(":")[0].strip("'\" ") for line in lines}
    return files.dbt if keys & set(_DBT_KEYS) else files.others


def import_files(files: Files, options: ImportOptions, *, lenient: bool = True) -> ImportedChecks:
    """Turn files into checks.

    Args:
        lenient: whether a file that cannot be read is listed, and not an error.

    Raises:
        InvalidPipeline: no namespace is known, or a file cannot be read.
    """
    imports: list[ImportedChecks] = []
    if (files.dbt or files.soda or files.singular) and options.namespace is None:
        kind = "models of dbt" if files.dbt or files.singular else "data sets of Soda"
        raise InvalidPipeline(f"say in which namespace the tables of the {kind} are: --namespace shop")
    if files.dbt or files.singular:
        projects = [read_project(each) for each in files.projects]
        variables = {name: value for project in projects for name, value in project.variables.items()}
        values = DbtValues(options.namespace or "", {**variables, **options.variables}, options.target)
        run = DbtImport(values, DbtMacros(values, files.macros), projects, options.scope, options.dialect)
        imports.append(run.run(files.dbt, lenient=lenient))
        for file in files.singular:
            run.import_singular(file)
    if files.soda:
        soda = SodaImport(options.namespace or "", options.scope, options.dialect)
        imports.append(soda.run(files.soda, lenient=lenient))
    imports += [_suite(file, options, lenient) for file in files.suites]
    return merged(imports)


def _suite(file: SourceText, options: ImportOptions, lenient: bool) -> ImportedChecks:
    if lenient:
        try:
            tree = json.loads(file.text)
        except ValueError as error:
            imported = ImportedChecks()
            imported.leave("", (file.path, 1), "the file", f"it cannot be read: {error}")
            return imported
        if not is_suite(tree):
            return ImportedChecks()
    return import_suite(file, options.namespace, options.table, options.scope, options.dialect)


def merged(imports: Sequence[ImportedChecks]) -> ImportedChecks:
    """Return several imports as one."""
    total = ImportedChecks()
    for each in imports:
        for table, checks in each.checks.items():
            listed = total.checks.setdefault(table, [])
            listed += [check for check in checks if check not in listed]
        total.left += each.left
        total.carried_over += each.carried_over
    return total
