"""Import the tests, constraints and freshness in the property files of a dbt project."""

from collections.abc import Callable, Mapping
from typing import Any

from importing.arguments import Arguments
from importing.dbt.constraints import constraint_drafts, contract_checks, freshness_drafts
from importing.dbt.generic_tests import known_test
from importing.dbt.jinja_values import DbtValues, Relation
from importing.dbt.macros import DbtMacros
from importing.dbt.project import DbtProject
from importing.dbt.properties import DbtTable, DbtTest, is_enabled, tables_in, tests_of
from importing.dbt.sql import DbtSql
from importing.drafts import Draft, Limits, Target, finished
from importing.imported import (
    AlwaysPasses,
    ImportedChecks,
    NotActive,
    NotCarriedOver,
    Parameters,
    SourceText,
    unreadable,
)
from importing.sql_text import plain_name
from importing.yaml_lines import line_of

_CORE = ("not_null", "unique", "accepted_values", "relationships")
_SEVERITIES = {"error": "fail", "warn": "warn", "fail": "fail", "warning": "warn"}
_NOT_OF_DATA = {
    "unit_tests": "a unit test runs a model on rows of its own, and says nothing about a table",
}


class DbtImport:
    """One import of the property files and singular tests of a project."""

    def __init__(
        self,
        values: DbtValues,
        macros: DbtMacros,
        project: DbtProject,
        scope: str,
        dialect: str | None,
        models: Mapping[str, str] | None = None,
    ) -> None:
        """Begin an import. `models` contains the known files of the project's models."""
        self._values, self._macros, self._project = values, macros, project
        self._models = models or {}
        self._scope, self._sql = scope, DbtSql(dialect)
        self.imported = ImportedChecks()

    def import_tree(self, path: str, tree: Any) -> None:
        """Import the content of a property file."""
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
        about = str(column.get("name", "")) if column is not None else ""

        def build() -> list[Parameters]:
            if test.problem:
                raise NotCarriedOver(test.problem)
            settings = self._project.settings_of(path)
            if not is_enabled([settings, test.config], self._values):
                raise NotActive("it is not enabled")
            return self._checks(table, column, test, self._values.resolve(settings))

        self._import(table, (path, test.line), test.name, build, about)

    def _import(
        self, table: DbtTable, at: tuple[str, int], name: str, build: Callable[[], list[Parameters]], about: str = ""
    ) -> None:
        """Add the checks of one test, or record the reason why it is left out."""
        try:
            file = self._models.get(table.names[-1], at[0]) if table.names and table.source is None else at[0]
            stated = self._project.table_settings(table.kind, file, table.names)
            if not is_enabled([stated, *table.configs], self._values):
                raise NotActive("its table is not enabled" if stated else "it is not enabled")
            if table.problem:
                raise NotCarriedOver(table.problem)
            self.imported.add(table.table, at, name, build(), about=about)
        except NotCarriedOver as error:
            inactive = isinstance(error, AlwaysPasses | NotActive)
            self.imported.leave(table.table, at, name, str(error), about=about, inactive=inactive)
        except Exception as error:  # a file may have any shape, and the error concerns this test alone
            self.imported.leave(table.table, at, name, unreadable(error), about=about)

    def _checks(self, table: DbtTable, column: Any, test: DbtTest, settings: Mapping[str, Any]) -> list[Parameters]:
        given, stated = self._values.resolve(dict(test.arguments)), self._values.resolve(dict(test.config))
        config = {**settings, **stated}
        where = self._sql.condition(config["where"]) if config.get("where") else None
        target = Target(table.table, where, self._scope)
        name = _quoted_column(column) if column is not None else given.pop("column_name", None)
        title = f"{test.name}({plain_name(name) or name})" if name else test.name
        arguments = {**_column(name), **given}
        relation = self._relation(table.table, config.get("where"))
        if self._is_own(test.name) and (query := self._query_of_macro(test.name, arguments, relation)):
            # `config(…)` in the definition overrides the project's settings, and the test's own settings override both.
            limits = self._limits({**settings, **self._macros.config, **stated})
            return finished(Draft(self._sql.query(query)), target, limits, title)
        builder = known_test(test.name)
        if builder is None:
            raise NotCarriedOver(_unknown(test.name))
        own = test.name.rpartition(".")[2].lower()
        if name and test.name.endswith((".expect_column_values_to_be_increasing", "_to_be_decreasing")):
            arguments.setdefault("sort_column", name)
        args = Arguments({**self._sql.arguments(own, arguments, name), "expectation": own})
        args.ignore("additional_select_columns")
        target = target.narrowed(args.take("row_condition"))
        draft = builder(args, target)
        args.ignore("expectation")
        args.refuse_rest()
        return finished(draft, target, self._limits(config), title)

    def _is_own(self, test: str) -> bool:
        """Return True if a test is one that a project defines, not one that is known here."""
        package, _, own = test.rpartition(".")
        if not package or package == self._project.name:
            return self._macros.overrides(own) or (test not in _CORE and self._macros.defines(own))
        return known_test(test) is None and self._macros.defines(own)

    def _query_of_macro(self, test: str, arguments: Mapping[str, Any], relation: Relation) -> str | None:
        """Return the query of a test that the project defines, or None if a known test of its name replaces it."""
        own = test.rpartition(".")[2]
        try:
            query = self._macros.query(own, {"model": relation, **arguments})
        except NotCarriedOver:
            if own.startswith("expect_"):
                return None
            raise
        if set_there := {"where", "enabled"} & {*self._macros.config}:
            raise NotCarriedOver(f"the definition of the test itself sets {', '.join(sorted(set_there))}")
        return query or " "

    def _import_constraints(self, path: str, table: DbtTable) -> None:
        target = Target(table.table, scope=self._scope)
        for line, name, build in constraint_drafts(table, self._values, target, self._sql):

            def checks(build: Callable[[], Draft] = build, name: str = name) -> list[Parameters]:
                return finished(build(), target, Limits(), name)

            self._import(table, (path, line), name, checks)
        for line, name, listed in contract_checks(table):
            self._import(table, (path, line), name, listed)

    def _import_freshness(self, path: str, table: DbtTable) -> None:
        for line, severity, build in freshness_drafts(
            table, self._values, Target(table.table, scope=self._scope), self._sql
        ):
            name = f"freshness ({'error' if severity == 'fail' else 'warn'}_after)"
            limits = Limits(severity=severity)

            def checks(build: Any = build, limits: Limits = limits, name: str = name) -> list[Parameters]:
                draft, target = build()
                return finished(draft, target, limits, name)

            self._import(table, (path, line), name, checks)

    def import_singular(self, file: SourceText) -> None:
        """Import a singular test, a query that returns the bad rows, as a check of the first table that it reads."""
        tables: list[str] = []
        at, name = (file.path, 1), file.path.rpartition("/")[2].removesuffix(".sql")
        try:
            query, own = self._macros.singular(file.text, tables)
            config = {**self._values.resolve(self._project.settings_of(file.path)), **own}
            if not is_enabled([config], self._values):
                raise NotActive("it is not enabled")
            if not tables:
                raise NotCarriedOver("the query reads no table by ref() or source()")
            where, limits = config.get("where"), self._limits(config)
            if where:
                raise NotCarriedOver("a `where` of a whole query has no equivalent here")
            checks = finished(Draft(self._sql.query(query)), Target(tables[0]), limits, name)
            self.imported.add(tables[0], at, name, checks)
        except NotCarriedOver as error:
            self.imported.leave("", at, name, str(error), inactive=isinstance(error, NotActive))
        except Exception as error:  # a file may have any shape, and the error concerns this test alone
            self.imported.leave("", at, name, unreadable(error))

    def _limits(self, config: Mapping[str, Any]) -> Limits:
        severity = _SEVERITIES.get(str(config.get("severity") or "error").strip().lower())
        if severity is None:
            raise NotCarriedOver(f"the severity {config.get('severity')!r} is neither error nor warn")
        if config.get("limit") is not None and any(config.get(key) for key in ("error_if", "warn_if", "fail_calc")):
            raise NotCarriedOver("a `limit` of the rows that are counted for a threshold has no equivalent here")
        return Limits(
            severity="warn" if severity == "warn" else "fail",
            fail_if=str(config["error_if"]).strip() if config.get("error_if") else None,
            warn_if=str(config["warn_if"]).strip() if config.get("warn_if") else None,
            failures=str(self._sql.expression(config["fail_calc"])) if config.get("fail_calc") else "count(*)",
        )

    def _relation(self, table: str, where: Any) -> Relation:
        """Return the table for the SQL of a test of the project. That SQL is translated as a whole."""
        if self._sql.dialect is None:
            target = Target(table, self._sql.condition(where) if where else None)
            return Relation(table, target.rows if where else "")
        return Relation(table, f"(SELECT * FROM {table} WHERE {where})" if where else "")


def _column(name: Any) -> dict[str, Any]:
    return {"column_name": name} if name else {}


def _quoted_column(column: Any) -> str:
    """Return a column's name, in quotes unless it is plain, so that it is not read as an expression."""
    name = str(column.get("name", "")).strip()
    return name if plain_name(name) else f"`{name}`"


def _unknown(name: str) -> str:
    package, _, own = name.rpartition(".")
    if package:
        return f"the package {package} has no equivalent here for {own}"
    return f"{own} is a test of the project: import the folder of the project, so that its SQL can be read"
