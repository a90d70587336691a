"""Importing from dbt: the tests, constraints and freshness of property files, one by one or of a whole project."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sluice.errors import InvalidPipeline
from sluice.importing.arguments import Arguments
from sluice.importing.dbt_constraints import constraint_drafts, contract_checks, freshness_drafts
from sluice.importing.dbt_macros import DbtMacros
from sluice.importing.dbt_project import DbtProject, settings_of
from sluice.importing.dbt_properties import DbtTable, DbtTest, names_in, tables_in, tests_of
from sluice.importing.dbt_tests import known_test
from sluice.importing.drafts import Draft, Limits, Target, finished
from sluice.importing.imported import AlwaysPasses, ImportedChecks, NotCarriedOver, SourceText
from sluice.importing.jinja_values import DbtValues, Relation
from sluice.importing.sql_text import plain_name, spark_condition
from sluice.importing.yaml_lines import line_of, read_yaml_of_dbt

_CORE = ("not_null", "unique", "accepted_values", "relationships")
_CONDITIONS = (
    "row_condition", "compare_row_condition", "from_condition", "to_condition", "exclusion_condition", "condition",
)  # fmt: skip
_SEVERITIES = {"error": "fail", "warn": "warn", "fail": "fail", "warning": "warn"}
_NOT_OF_DATA = {
    "unit_tests": "a unit test runs a model on rows of its own, and says nothing about a table",
}


class DbtImport:
    """One import of property files of dbt."""

    def __init__(
        self, values: DbtValues, macros: DbtMacros, projects: Sequence[DbtProject], scope: str, dialect: str | None
    ) -> None:
        self._values, self._macros, self._projects = values, macros, projects
        self._scope, self._dialect = scope, dialect
        self.imported = ImportedChecks()

    def run(self, files: Sequence[SourceText], *, lenient: bool) -> ImportedChecks:
        """Import files.

        Args:
            lenient: whether a file that is not valid YAML is listed, and not an error.

        Raises:
            InvalidPipeline: a file is not valid YAML.
        """
        trees = []
        for file in files:
            try:
                tree, repeated = read_yaml_of_dbt(file)
            except InvalidPipeline as error:
                if not lenient:
                    raise
                self.imported.leave("", (file.path, 1), "the file", str(error).partition(": ")[2])
                continue
            for each in repeated:
                why = f"dbt reads the value of the same key on line {each.last_line} in its place"
                self.imported.leave("", (file.path, each.line), f"the key {each.key}", why, inactive=True)
            if isinstance(tree, dict):
                trees.append((file.path, tree))
        for _, tree in trees:
            names_in(tree, self._values)
        for path, tree in trees:
            self._import_tree(path, tree)
        return self.imported

    def _import_tree(self, path: str, tree: Any) -> None:
        for table in tables_in(tree, self._values):
            for test in tests_of(table.node):
                self._import_test(path, table, None, test)
            for column in table.columns:
                for test in tests_of(column):
                    self._import_test(path, table, column, test)
            self._import_constraints(path, table)
            if table.source is not None:
                self._import_freshness(path, table)
        for kind, why in _NOT_OF_DATA.items():
            listed = tree.get(kind)
            for index, each in enumerate(listed if isinstance(listed, list) else []):
                name = str(each.get("name", "")) if isinstance(each, dict) else ""
                self.imported.leave("", (path, line_of(listed, index)), f"{kind} {name}", why, inactive=True)

    def _import_test(self, path: str, table: DbtTable, column: Any, test: DbtTest) -> None:
        about, at = str(column.get("name", "")) if column is not None else "", (path, test.line)
        try:
            if test.problem:
                raise NotCarriedOver(test.problem)
            settings = settings_of(self._projects, path)
            config = self._values.resolve({**settings, **test.config})
            if not table.is_enabled or str(config.get("enabled", True)).lower() == "false":
                self.imported.leave(table.table, at, test.name, "it is not enabled", about=about, inactive=True)
                return
            checks = self._checks(table, column, test, config)
        except NotCarriedOver as error:
            inactive = isinstance(error, AlwaysPasses)
            self.imported.leave(table.table, at, test.name, str(error), about=about, inactive=inactive)
        else:
            self.imported.add(table.table, at, test.name, checks, about=about)

    def _checks(self, table: DbtTable, column: Any, test: DbtTest, config: Mapping[str, Any]) -> list[dict[str, Any]]:
        given = self._values.resolve(dict(test.arguments))
        for key in _CONDITIONS:
            if given.get(key):
                given[key] = spark_condition(str(given[key]), self._dialect)
        where = spark_condition(str(config["where"]), self._dialect) if config.get("where") else None
        target = Target(table.table, where, self._scope)
        name = _quoted_column(column) if column is not None else given.pop("column_name", None)
        title = f"{test.name}({plain_name(name) or name})" if name else test.name
        builder = known_test(test.name)
        package, _, own = test.name.rpartition(".")
        if test.name not in _CORE and self._macros.defines(own) and (builder is None or not package):
            try:
                query = self._macros.query(own, {"model": _relation(target), **_column(name), **given})
            except NotCarriedOver:
                if not own.startswith("expect_"):
                    raise
            else:
                limits = _limits({**self._macros.config, **config})
                return finished(Draft(self._in_spark(query)), target, limits, title)
        if builder is None:
            raise NotCarriedOver(_unknown(test.name))
        if name and test.name.endswith((".expect_column_values_to_be_increasing", "_to_be_decreasing")):
            given.setdefault("sort_column", name)
        args = Arguments({**_column(name), **given, "expectation": own.lower()})
        args.ignore("additional_select_columns")
        target = target.narrowed(args.take("row_condition"))
        draft = builder(args, target)
        args.ignore("expectation")
        args.refuse_rest()
        return finished(draft, target, _limits(config), title)

    def _in_spark(self, query: str) -> str:
        plain = re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", query)).strip().rstrip(";")
        return spark_condition(plain, self._dialect)

    def _import_constraints(self, path: str, table: DbtTable) -> None:
        target = Target(table.table, scope=self._scope)
        for line, name, build in constraint_drafts(table, self._values, target):
            try:
                checks = finished(build(), target, Limits(), name)
            except NotCarriedOver as error:
                self.imported.leave(table.table, (path, line), name, str(error))
            else:
                self.imported.add(table.table, (path, line), name, checks)
        for line, name, checks in contract_checks(table):
            self.imported.add(table.table, (path, line), name, checks)

    def _import_freshness(self, path: str, table: DbtTable) -> None:
        for line, severity, build in freshness_drafts(table, self._values, Target(table.table, scope=self._scope)):
            name = f"freshness ({'error' if severity == 'fail' else 'warn'}_after)"
            try:
                draft, target = build()
                checks = finished(draft, target, Limits(severity=severity), name)
            except NotCarriedOver as error:
                self.imported.leave(table.table, (path, line), name, str(error))
            else:
                self.imported.add(table.table, (path, line), name, checks)

    def import_singular(self, file: SourceText) -> None:
        """Import a singular test: a query of a project that returns the bad rows, as a check of the first table."""
        tables: list[str] = []
        at, name = (file.path, 1), file.path.rpartition("/")[2].removesuffix(".sql")
        try:
            query, own = self._macros.singular(file.text, tables)
            config = {**self._values.resolve(settings_of(self._projects, file.path)), **own}
            if str(config.get("enabled", True)).lower() == "false":
                self.imported.leave("", at, name, "it is not enabled", inactive=True)
                return
            if not tables:
                raise NotCarriedOver("the query reads no table by ref() or source()")
            where, limits = config.get("where"), _limits(config)
            if where:
                raise NotCarriedOver("a `where` of a whole query has no equivalent here")
            checks = finished(Draft(self._in_spark(query)), Target(tables[0]), limits, name)
        except NotCarriedOver as error:
            self.imported.leave("", at, name, str(error))
        else:
            self.imported.add(tables[0], at, name, checks)


def _limits(config: Mapping[str, Any]) -> Limits:
    severity = _SEVERITIES.get(str(config.get("severity") or "error").strip().lower())
    if severity is None:
        raise NotCarriedOver(f"the severity {config.get('severity')!r} is neither error nor warn")
    return Limits(
        severity="warn" if severity == "warn" else "fail",
        fail_if=str(config["error_if"]).strip() if config.get("error_if") else None,
        warn_if=str(config["warn_if"]).strip() if config.get("warn_if") else None,
        failures=str(config.get("fail_calc") or "count(*)"),
    )


def _relation(target: Target) -> Relation:
    return Relation(target.table, target.rows if target.where else "")


def _column(name: Any) -> dict[str, Any]:
    return {"column_name": name} if name else {}


def _quoted_column(column: Any) -> str:
    """Return a column's name; in quotes if it is no plain one, which is then no expression."""
    name = str(column.get("name", "")).strip()
    return name if plain_name(name) else f"`{name}`"


def _unknown(name: str) -> str:
    package, _, own = name.rpartition(".")
    if package:
        return f"the package {package} has no equivalent here for {own}"
    return f"{own} is a test of the project: import the folder of the project, so that its SQL can be read"
