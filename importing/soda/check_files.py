"""Import the checks of SodaCL's `checks.yml` files."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from importing.arguments import UNREADABLE
from importing.dbt.jinja_values import plain_identifier
from importing.drafts import Draft, Limits, Target, bad_rows, finished, native, sql_check
from importing.expectations.tables import measured
from importing.imported import ImportedChecks, NotCarriedOver, Parameters, SourceText
from importing.soda.freshness import FRESHNESS, freshness_checks
from importing.soda.metrics import alert_query, metric_draft
from importing.soda.schema import schema_checks
from importing.soda.settings import (
    ALERTS,
    alerts_of,
    bare,
    columns_in,
    contract_checks,
    datasets_of,
    is_contract,
    kind_of,
    require_known,
    written_checks,
)
from importing.soda.tables import Datasets, full_name, qualified, refuse_variables
from importing.soda.text import Metric, parse_metric, threshold_sql
from importing.soda.values import MISSING, VALIDITY
from importing.sql_text import plain_name, quoted_name, spark_condition
from importing.yaml_lines import line_of, plain, read_yaml
from sluice.errors import InvalidPipeline
from sluice.sql.tokens import SqlProblem, without_comments

_HEADER = re.compile(r"""checks for\s+(?P<table>"[^"]+"|`[^`]+`|\S+)(?:\s+(?:\[(?P<filter>[^\]]+)\]|(?P<bare>\w+)))?""")
_SECTION = re.compile(r"(checks|configurations) for\s|filter\s|for each\s")
_FILTER = re.compile(r"""filter\s+(?P<table>"[^"]+"|\S+)\s+\[?(?P<name>[^\]]+)\]?""")
_CONFIGURATIONS = re.compile(r"configurations for\s+(\S+)")
_COLUMN_SETTING = re.compile(r"(?P<setting>(?:valid|invalid|missing) [a-z ]+?)\s+for\s+(?P<column>\S+)")
_REFERENCE = re.compile(
    r"values in\s+\(?(?P<own>[^)]+?)\)?\s+must (?P<no>not )?exist in\s+(?P<table>\S+)\s+\(?(?P<theirs>[^)]+?)\)?"
)
_SAME_ROWS = re.compile(r"row_count same as\s+(?P<table>\S+)(?:\s+in\s+(?P<source>\S+))?")
_NO_CHECKS = ("profile columns", "discover datasets", "discover tables", "sample datasets", "variables")
_NO_EQUIVALENT = {
    "anomaly": "it compares with Soda's own history: the check `volume` compares with earlier publications",
    "change": "it compares with Soda's own history: the check `volume` compares with earlier publications",
    "distribution_difference": "a distribution of reference has no equivalent here",
    "group by": "checks of each group have no equivalent here: write `sql` with GROUP BY",
    "group evolution": "it compares with Soda's own history",
    "reconciliation": "checks between two data sources have no equivalent here",
}


class SodaImport:
    """One import of SodaCL files."""

    def __init__(self, namespace: str, scope: str, dialect: str | None) -> None:
        self._namespace, self._scope, self._dialect = namespace, scope, dialect
        self._datasets = Datasets(namespace)
        self._filters: dict[tuple[str, str], str] = {}
        self._configurations: dict[tuple[str, str], dict[str, Any]] = {}
        self.imported = ImportedChecks()

    def run(self, files: Sequence[SourceText], *, lenient: bool) -> ImportedChecks:
        """Import files.

        Raises:
            InvalidPipeline: a file is not valid YAML, and `lenient` is False.
        """
        trees = []
        for file in files:
            try:
                trees.append((file.path, read_yaml(file)))
            except InvalidPipeline as error:
                if not lenient:
                    raise
                self.imported.leave("", (file.path, 1), "the file", str(error).partition(": ")[2])
        for _, tree in trees:
            self._read_settings(tree)
            self._read_names(tree)
        for path, tree in trees:
            in_contract = isinstance(tree, dict) and is_contract(tree)
            if in_contract:
                self._list_contract(path, tree)
            for header, body in tree.items() if isinstance(tree, dict) else ():
                if in_contract and not _SECTION.match(str(header).strip()):
                    continue
                self._import_section(path, str(header), body, line_of(tree, header))
        return self.imported

    def _list_contract(self, path: str, contract: Mapping[str, Any]) -> None:
        """List the checks of a data contract, or the contract if it has none."""
        name = self._datasets.unchecked_table(str(contract["dataset"]).rpartition("/")[2])
        for line, column, kind in list(contract_checks(contract)) or [(1, "", "the file")]:
            self.imported.leave(name, (path, line), kind, "a data contract of Soda is not read", about=column)

    def _read_settings(self, tree: Any) -> None:
        for header, body in tree.items() if isinstance(tree, dict) else ():
            if (match := _FILTER.fullmatch(str(header).strip())) and isinstance(body, dict) and body.get("where"):
                self._filters[bare(match["table"]), match["name"].strip()] = str(body["where"])
            if (match := _CONFIGURATIONS.fullmatch(str(header).strip())) and isinstance(body, dict):
                for key, value in plain(body).items():
                    if setting := _COLUMN_SETTING.fullmatch(key):
                        known = self._configurations.setdefault((full_name(match[1]), bare(setting["column"])), {})
                        known[setting["setting"]] = value

    def _read_names(self, tree: Any) -> None:
        for header, body in tree.items() if isinstance(tree, dict) else ():
            match = _HEADER.fullmatch(str(header).strip())
            names = [match["table"]] if match else _datasets_of_each(str(header), body) or []
            for name in names:
                self._datasets.note(name, checked=True)
            for _, _, written in written_checks(body if match else body.get("checks")) if names else ():
                reference = _REFERENCE.fullmatch(written) or _SAME_ROWS.fullmatch(written)
                if reference and not reference.groupdict().get("source"):
                    self._datasets.note(reference["table"], checked=False)

    def _import_section(self, path: str, header: str, body: Any, line: int) -> None:
        text = header.strip()
        if text.startswith(_NO_CHECKS) or _FILTER.fullmatch(text):
            return
        if _CONFIGURATIONS.fullmatch(text):
            self._list_unknown(path, text, body, line)
            return
        if match := _HEADER.fullmatch(text):
            self._import_table(path, match["table"], (match["filter"] or match["bare"] or "").strip(), body, line)
        elif (tables := _datasets_of_each(text, body)) is not None:
            self._import_each(path, text, tables, body.get("checks"), line)
        else:
            self.imported.leave("", (path, line), text[:60], "this section has no equivalent here")

    def _import_each(self, path: str, header: str, tables: list[str], checks: Any, line: int) -> None:
        """Import the checks of a section for several data sets, and list those of data sets with unknown names."""
        if not tables:
            self.imported.leave("", (path, line), header[:60], "it does not list its data sets")
        for table in tables:
            if "%" not in table and "*" not in table and not table.startswith(("exclude", "include")):
                self._import_table(path, table, "", checks, line)
                continue
            why = f"the tables of {table[:60]!r} are not known here: name them"
            for written in [each for _, _, each in written_checks(checks)] or [header]:
                self.imported.leave("", (path, line), written[:60], why)

    def _list_unknown(self, path: str, header: str, body: Any, line: int) -> None:
        """List unknown settings of columns. Without these settings, checks would mean something else."""
        for key in body if isinstance(body, dict) else filter(None, [body]):
            match = _COLUMN_SETTING.fullmatch(str(key))
            if match is None or match["setting"] not in (*MISSING, *VALIDITY):
                at = (path, line_of(body, key, line))
                self.imported.leave("", at, header[:60], f"{str(key)[:60]!r} has no equivalent here")

    def _import_table(self, path: str, table: str, filter_name: str, checks: Any, header: int) -> None:
        name = self._datasets.unchecked_table(table)
        if checks is not None and not isinstance(checks, list):
            self.imported.leave(name, (path, header), "the checks", "they are not a list")
        for line, settings, written in written_checks(checks):
            test, about = kind_of(written), columns_in(written)
            try:
                target = self._target(self._datasets.table(table), bare(table), filter_name)
                made = self._checks(written, settings, target)
            except NotCarriedOver as error:
                self.imported.leave(name, (path, line), test, str(error), about=about)
            except UNREADABLE as error:
                self.imported.leave(name, (path, line), test, f"it cannot be read: {error}", about=about)
            else:
                self.imported.add(name, (path, line), test, made, about=about)

    def _target(self, name: str, table: str, filter_name: str) -> Target:
        if not filter_name:
            return Target(name, None, self._scope)
        if (table, filter_name) not in self._filters:
            raise NotCarriedOver(f"the filter {filter_name!r} of {table} is not in the file")
        return Target(name, self._condition(self._filters[table, filter_name]), self._scope)

    def _condition(self, text: str) -> str:
        refuse_variables(text)
        try:
            return without_comments(spark_condition(text, self._dialect)).strip()
        except SqlProblem as error:
            raise NotCarriedOver(str(error)) from error

    def _checks(self, written: str, settings: Mapping[str, Any], target: Target) -> list[Parameters]:
        refuse_variables(f"{written} {settings}")
        for begin, why in _NO_EQUIVALENT.items():
            if written.startswith(begin):
                raise NotCarriedOver(why)
        if condition := settings.get("filter"):
            target = target.narrowed(self._condition(str(condition)))
        title = str(settings.get("name") or written)
        if written.startswith("schema"):
            return schema_checks(settings)
        if written.startswith("failed rows"):
            return self._failed_rows(settings, target, title)
        if match := _REFERENCE.fullmatch(written):
            require_known(settings)
            return self._reference(match, target, title)
        if match := _SAME_ROWS.fullmatch(written):
            require_known(settings)
            return self._same_rows(match, target, title)
        if match := FRESHNESS.fullmatch(written):
            return freshness_checks(match, settings, target, title)
        return self._metric(written, settings, target, title)

    def _metric(self, written: str, settings: Mapping[str, Any], target: Target, title: str) -> list[Parameters]:
        metric = parse_metric(written)
        column = bare(metric.arguments[0]) if metric.arguments else ""
        known = {**self._configurations.get((self._datasets.checked_name(target.table), column), {}), **settings}
        own = {f"{metric.name} {kind}": kind for kind in ("expression", "query")}
        if key := next((key for key in settings if key in own), None):
            return self._own_metric(metric, str(settings[key]), own[key], settings, target, title)
        require_known(settings, *MISSING, *VALIDITY, *ALERTS, "filter")
        if alerts := alerts_of(settings, metric.threshold):
            return [sql_check(alert_query(metric, known, target, alert), title, level) for level, alert in alerts]
        return finished(metric_draft(metric, known, target), target, Limits(), title)

    def _own_metric(
        self, metric: Metric, sql: str, kind: str, settings: Mapping[str, Any], target: Target, title: str
    ) -> list[Parameters]:
        """Return the checks of a metric that the file defines by an expression or by a query.

        A query has its own conditions, so a filter in addition has no equivalent.
        """
        require_known(settings, f"{metric.name} {kind}", *ALERTS, *(["filter"] if kind == "expression" else []))
        text = self._condition(sql)
        value = f"SELECT {text} AS observed FROM {target.rows} AS rows" if kind == "expression" else ""
        observed = value or f"SELECT ({qualified(text, self._namespace)}) AS observed"
        shape = f"SELECT * FROM ({observed}) AS measured WHERE "
        alerts = alerts_of(settings, metric.threshold)
        if metric.threshold is not None:
            return [sql_check(f"{shape}NOT coalesce({threshold_sql(metric.threshold)}, FALSE)", title)]
        return [sql_check(f"{shape}{threshold_sql(alert)}", title, level) for level, alert in alerts]

    def _failed_rows(self, settings: Mapping[str, Any], target: Target, title: str) -> list[Parameters]:
        """Return the checks of rows that meet a condition, or that a query returns. A query allows no filter."""
        condition, query = settings.get("fail condition"), settings.get("fail query")
        require_known(settings, "fail condition" if query is None else "fail query", "filter", *ALERTS)
        if query is not None and "filter" in settings:
            raise NotCarriedOver("'filter' together with `fail query` has no equivalent here")
        alerts = alerts_of(settings, None) if any(level in settings for level in ALERTS) else []
        title = title if title != "failed rows" else ""
        if condition is not None:
            bad = self._condition(str(condition))
            draft = Draft(bad_rows(target, bad), native("expression_is_true", expression=f"NOT coalesce({bad}, FALSE)"))
        elif query is not None:
            draft = Draft(qualified(self._condition(str(query)).strip().rstrip(";"), self._namespace))
        else:
            raise NotCarriedOver("neither `fail condition` nor `fail query` is given")
        if not alerts:
            return finished(draft, target, Limits(), title)
        counted = f"SELECT * FROM (SELECT count(*) AS observed FROM ({draft.query}) AS bad_rows) AS counted WHERE "
        return [sql_check(counted + threshold_sql(alert), title, level) for level, alert in alerts]

    def _reference(self, match: re.Match[str], target: Target, title: str) -> list[Parameters]:
        """Return the check that values occur, or do not occur, in another table. Rows with only nulls do not count."""
        own, theirs = ([plain_name(each) for each in match[name].split(",")] for name in ("own", "theirs"))
        other = self._datasets.table(match["table"])
        if len(own) != len(theirs) or None in (*own, *theirs):
            raise NotCarriedOver("the two lists must name equally many columns")
        on = " AND ".join(f"rows.`{one}` = theirs.`{two}`" for one, two in zip(own, theirs, strict=True))
        known = " OR ".join(f"rows.`{each}` IS NOT NULL" for each in own)
        join = "LEFT SEMI" if match["no"] else "LEFT ANTI"
        joined = f"{target.rows} AS rows {join} JOIN {quoted_name(other)} AS theirs ON {on}"
        query, simple = f"SELECT rows.* FROM {joined} WHERE {known}", len(own) == 1 and not match["no"]
        checks = native("relationships", column=own[0], to=other, field=theirs[0]) if simple else []
        return finished(Draft(query, checks), target, Limits(), title)

    def _same_rows(self, match: re.Match[str], target: Target, title: str) -> list[Parameters]:
        if source := match["source"]:  # a data source is a namespace, like a source of dbt
            other = Datasets(plain_identifier(bare(source))).table(match["table"])
        else:
            other = self._datasets.table(match["table"])
        query = measured(f"count(*) - (SELECT count(*) FROM {quoted_name(other)})", "observed = 0", target)
        return finished(Draft(query, native("equal_row_count", to=other)), target, Limits(), title)


def _datasets_of_each(header: str, body: Any) -> list[str] | None:
    """Return the data sets of a section that begins with `for each`, or None for another section."""
    is_each = header.strip().startswith(("for each dataset", "for each table")) and isinstance(body, dict)
    return datasets_of(body) if is_each else None
