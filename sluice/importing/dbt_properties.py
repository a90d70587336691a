"""The property files of dbt: the tests of models, seeds, snapshots and sources, wherever dbt lets them stand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sluice.importing.imported import NotCarriedOver
from sluice.importing.jinja_values import DbtValues, plain_identifier
from sluice.importing.yaml_lines import line_of, plain

NODES = ("models", "seeds", "snapshots")
CONFIG = (
    "enabled", "severity", "where", "warn_if", "error_if", "fail_calc", "limit", "tags", "meta", "store_failures",
    "store_failures_as", "schema", "database", "alias", "group", "docs", "sql_header", "description",
)  # fmt: skip
"""What dbt takes for settings of a test, wherever it stands among its arguments."""


@dataclass(frozen=True)
class DbtTest:
    """One test as it is written."""

    name: str
    arguments: Mapping[str, Any]
    config: Mapping[str, Any]
    line: int
    problem: str = ""
    """Why it cannot be read as a test."""


@dataclass(frozen=True)
class DbtTable:
    """A model, seed, snapshot or table of a source, in one version."""

    name: str
    """Its name in dbt."""
    table: str
    """Its table here, `namespace.table`."""
    node: Any
    line: int
    is_enabled: bool = True
    source: Any = None
    """The source that it is a table of; None for the others."""

    @property
    def columns(self) -> list[Any]:
        """Its columns, as mappings."""
        return [each for each in self.node.get("columns") or [] if isinstance(each, dict)]


def tables_in(tree: Any, values: DbtValues) -> Iterator[DbtTable]:
    """Yield everything in a property file that is a table; a model with versions is a table for each."""
    for kind in NODES:
        for node in _mappings(tree.get(kind)):
            config = node.get("config") or {}
            name = str(node.get("name", ""))
            alias = _resolved(config.get("alias") or node.get("alias"), values) or name
            enabled = _resolved(config.get("enabled", True), values) not in (False, "false")
            if not _mappings(node.get("versions")):
                table = f"{values.namespace}.{plain_identifier(str(alias))}"
                yield DbtTable(name, table, node, line_of(node), enabled)
            for version in _mappings(node.get("versions")):
                number = version.get("v")
                own = (version.get("config") or {}).get("alias") or f"{name}_v{number}"
                table = f"{values.namespace}.{plain_identifier(str(own))}"
                yield DbtTable(f"{name}.v{number}", table, _of_version(node, version), line_of(version), enabled)
    for source in _mappings(tree.get("sources")):
        config = source.get("config") or {}
        enabled = _resolved(config.get("enabled", True), values) not in (False, "false")
        schema = _resolved(source.get("schema"), values) or str(source.get("name", ""))
        for node in _mappings(source.get("tables")):
            own = _resolved((node.get("config") or {}).get("enabled", True), values) not in (False, "false")
            name = _resolved(node.get("identifier"), values) or node.get("name", "")
            table = f"{plain_identifier(str(schema))}.{plain_identifier(str(name))}"
            yield DbtTable(str(node.get("name", "")), table, node, line_of(node), enabled and own, source)


def names_in(tree: Any, values: DbtValues) -> None:
    """Record how `ref` and `source` name the tables of a property file."""
    for each in tables_in(tree, values):
        if each.source is not None:
            values.sources[str(each.source.get("name", "")), each.name] = each.table
        else:
            values.models[each.name] = each.table
    for node in _mappings(tree.get("models")):
        versions = [version.get("v") for version in _mappings(node.get("versions"))]
        if versions:
            latest = node.get("latest_version") or max(versions, key=lambda v: (isinstance(v, int), str(v).zfill(9)))
            name = str(node.get("name", ""))
            values.models[name] = values.models.get(f"{name}.v{latest}", f"{values.namespace}.{name}")


def tests_of(node: Any) -> Iterator[DbtTest]:
    """Yield the tests that are written at a table or a column."""
    for key in ("tests", "data_tests"):
        listed = node.get(key)
        if listed is None:
            continue
        for index, written in enumerate(listed if isinstance(listed, list) else [listed]):
            yield _read(written, line_of(listed, index, line_of(node)))


def _read(written: Any, line: int) -> DbtTest:
    if isinstance(written, str):
        return DbtTest(written.strip(), {}, {}, line)
    if not isinstance(written, dict) or not written:
        return DbtTest(str(written)[:60], {}, {}, line, "this is no test: write a name, or a name and its arguments")
    given = plain(written)
    if "test_name" in given:
        name, body = str(given.pop("test_name")), given
        given.pop("name", None)
    elif len(given) == 1 or next(iter(given.values())) is None:
        # A second key with the same indentation as the name is a common slip: dbt's newer versions take it for config.
        name, first = next(iter(given.items()))
        body = {**(first if isinstance(first, dict) else {}), **{k: v for k, v in given.items() if k != name}}
        if first is not None and not isinstance(first, dict):
            return DbtTest(name, {}, {}, line, f"the arguments of a test are a mapping, and not {str(first)[:40]!r}")
    else:
        name = str(next(iter(given)))
        siblings = ", ".join(repr(key) for key in list(given)[1:])
        return DbtTest(name, {}, {}, line, f"{siblings} stands beside the name of the test, and belongs under it")
    arguments = body.pop("arguments", None) or {}
    config: dict[str, Any] = {}
    for level in (body, arguments):
        config |= {key: level.pop(key) for key in CONFIG if key in level}
        config |= level.pop("config", None) or {}
        level.pop("name", None)
    return DbtTest(name.strip(), {**body, **arguments}, config, line)


def _of_version(node: Any, version: Any) -> dict[str, Any]:
    """Return a model as one of its versions has it: its own columns, beside those that it includes."""
    columns: list[Any] = []
    listed = version.get("columns")
    base = _mappings(node.get("columns"))
    if listed is None:
        columns = base
    for each in _mappings(listed):
        if "include" in each:
            wanted, excluded = each["include"], each.get("exclude") or []
            names = None if wanted in ("all", "*") else wanted
            columns += [c for c in base if (names is None or c.get("name") in names) and c.get("name") not in excluded]
        else:
            columns = [c for c in columns if c.get("name") != each.get("name")] + [each]
    merged = {**node, **version, "columns": columns}
    merged.pop("versions", None)
    return merged


def _mappings(listed: Any) -> list[Any]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _resolved(value: Any, values: DbtValues) -> Any:
    try:
        return values.resolve(plain(value))
    except NotCarriedOver:
        return None
