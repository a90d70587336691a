"""Read the property files of dbt: tests of models, seeds, snapshots and sources, in every form that dbt allows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importing.dbt.jinja_values import DbtValues, plain_identifier
from importing.imported import NotCarriedOver
from importing.yaml_lines import line_of, plain

NODES = ("models", "seeds", "snapshots")
CONFIG = (
    "enabled", "severity", "where", "warn_if", "error_if", "fail_calc", "limit", "tags", "meta", "store_failures",
    "store_failures_as", "schema", "database", "alias", "sql_header",
)  # fmt: skip
"""Settings of a test, which dbt also reads from its arguments, or from under `arguments`."""
_SHAPES = {
    **dict.fromkeys(("models", "seeds", "snapshots", "sources", "tables", "columns", "versions", "constraints"), list),
    **dict.fromkeys(("config", "contract", "freshness"), dict),
}
"""The type of each property that contains tests or becomes checks."""
_TESTS = ("tests", "data_tests")
_OF_MAPPINGS = ("models", "seeds", "snapshots", "sources", "tables", "columns", "versions")


@dataclass(frozen=True)
class DbtTest:
    """One test as it is written."""

    name: str
    arguments: Mapping[str, Any]
    config: Mapping[str, Any]
    line: int
    problem: str = ""
    """The reason why it cannot be read as a test."""


@dataclass(frozen=True)
class DbtTable:
    """A model, seed, snapshot or table of a source, in one version."""

    name: str
    """Its name in dbt."""
    table: str
    """Its table here, `namespace.table`."""
    node: Any
    line: int
    configs: Sequence[Any] = ()
    """Its settings. The last one that states a value counts."""
    source: Any = None
    """The source that the table belongs to; None for other nodes."""
    problem: str = ""
    """The reason why the name of its table is not known here."""
    kind: str = "sources"
    """The key of its list in the property file."""

    @property
    def names(self) -> list[str]:
        """Its name in settings of a project, after the name of its source if it has one."""
        return [str(each["name"]) for each in (self.source, self.node) if each is not None and each.get("name")]

    @property
    def columns(self) -> list[Any]:
        """Its columns, as mappings."""
        return _mappings(self.node.get("columns"))


def is_enabled(configs: Iterable[Any], values: DbtValues) -> bool:
    """Return the value of `enabled` in the last of some settings that states it; True if none does.

    Raises:
        NotCarriedOver: the value is not known here, or is not a truth value.
    """
    stated = [each["enabled"] for each in configs if each.get("enabled") is not None]
    enabled = values.resolve(plain(stated[-1])) if stated else True
    if str(enabled).strip().lower() not in ("true", "false"):
        raise NotCarriedOver(f"`enabled` is {str(enabled)[:40]!r}, and neither true nor false")
    return str(enabled).strip().lower() == "true"


def shape_problems(tree: Any) -> Iterator[tuple[int, str]]:
    """Yield the line and the problem of each value of a wrong type, and remove properties of a wrong type."""
    for key, kind in _SHAPES.items():
        node = tree.get(key)
        if node is None:
            continue
        if not isinstance(node, kind):
            line, what = line_of(tree, key), "list" if kind is list else "mapping"
            yield line, f"`{key}` is {str(plain(node))[:40]!r}, not a {what}"
            del tree[key]
            continue
        items = [] if key == "constraints" else list(enumerate(node)) if isinstance(node, list) else [(0, node)]
        for index, each in items:
            if isinstance(each, dict):
                yield from shape_problems(each)
            elif key in _OF_MAPPINGS:
                yield line_of(node, index, line_of(tree, key)), f"{str(each)[:40]!r} in `{key}` is not a mapping"


def tables_in(tree: Any, values: DbtValues) -> Iterator[DbtTable]:
    """Yield every table of a property file. A model with versions is one table for each version."""
    for kind in NODES:
        for node in _mappings(tree.get(kind)):
            name, config = str(node.get("name", "")), node.get("config") or {}
            alias = config.get("alias") or node.get("alias")
            if not _mappings(node.get("versions")):
                table, problem = _table(values, values.namespace, alias or name)
                yield DbtTable(name, table, node, line_of(node), [config], None, problem, kind)
            for version in _mappings(node.get("versions")):
                number, own = version.get("v"), version.get("config") or {}
                table, problem = _table(values, values.namespace, own.get("alias") or f"{name}_v{number}")
                merged = _of_version(node, version)
                yield DbtTable(f"{name}.v{number}", table, merged, line_of(version), [config, own], None, problem, kind)
    for source in _mappings(tree.get("sources")):
        for node in _mappings(source.get("tables")):
            name, configs = str(node.get("name", "")), [source.get("config") or {}, node.get("config") or {}]
            schema = source.get("schema") or source.get("name", "")
            table, problem = _table(values, schema, node.get("identifier") or name)
            yield DbtTable(name, table, node, line_of(node), configs, source, problem)


def _table(values: DbtValues, namespace: Any, name: Any) -> tuple[str, str]:
    """Return the name of a table, and the reason why it is not known, or an empty text."""
    try:
        parts = [str(values.resolve(str(each))).strip() for each in (namespace, name)]
    except NotCarriedOver as error:
        return f"{plain_identifier(str(namespace))}.{plain_identifier(str(name))}", f"its table is not known: {error}"
    return ".".join(map(plain_identifier, parts)), "" if all(parts) else "it has no name"


def names_in(tree: Any, values: DbtValues) -> None:
    """Record the tables of a property file under the names that `ref` and `source` use."""
    for each in tables_in(tree, values):
        if each.problem:
            values.unknown_tables[each.table] = each.problem
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
    """Yield the tests of a table or a column."""
    for key in _TESTS:
        listed = node.get(key)
        if listed is None:
            continue
        for index, written in enumerate(listed if isinstance(listed, list) else [listed]):
            yield _read(written, line_of(listed, index, line_of(node)))


def _read(written: Any, line: int) -> DbtTest:
    if isinstance(written, str):
        return DbtTest(written.strip(), {}, {}, line)
    if not isinstance(written, dict) or not written:
        return DbtTest(str(written)[:60], {}, {}, line, "this is not a test: write a name, or a name and its arguments")
    given = plain(written)
    if "test_name" in given:
        name, body = str(given.pop("test_name")), given
        given.pop("name", None)
    elif len(given) == 1 or next(iter(given.values())) is None:
        # A second key with the same indentation as the name is a common slip. Newer versions of dbt read it as config.
        name, first = next(iter(given.items()))
        body = {**(first if isinstance(first, dict) else {}), **{k: v for k, v in given.items() if k != name}}
        if first is not None and not isinstance(first, dict):
            return DbtTest(name, {}, {}, line, f"the arguments of a test must be a mapping, not {str(first)[:40]!r}")
    else:
        name = str(next(iter(given)))
        siblings = ", ".join(repr(key) for key in list(given)[1:])
        return DbtTest(name, {}, {}, line, f"{siblings} is on the level of the test's name: indent it below the name")
    arguments = body.pop("arguments", None) or {}
    levels = (
        body,
        body.get("config") or {},
        arguments,
        (isinstance(arguments, dict) and arguments.get("config")) or {},
    )
    if not all(isinstance(each, dict) for each in levels):
        return DbtTest(name.strip(), {}, {}, line, "the `arguments` or the `config` of the test is not a mapping")
    # dbt reads both together: a key with the name of a setting is a setting under `arguments`, too.
    given = {**body, **arguments}
    config = {key: given.pop(key) for key in CONFIG if key in given} | (given.pop("config", None) or {})
    given = {key: value for key, value in given.items() if key not in ("name", "description")}
    return DbtTest(name.strip(), given, {key: value for key, value in config.items() if value is not None}, line)


def _of_version(node: Any, version: Any) -> dict[str, Any]:
    """Return a model in one of its versions, with the version's own columns and those that it includes."""
    columns: list[Any] = []
    listed = version.get("columns")
    base = _mappings(node.get("columns"))
    if listed is None:
        columns = base
    for each in _mappings(listed):
        if "include" in each:
            wanted, excluded = each["include"], _listed(each.get("exclude"))
            names = None if wanted in ("all", "*") else _listed(wanted)
            columns += [c for c in base if (names is None or c.get("name") in names) and c.get("name") not in excluded]
        else:
            columns = [c for c in columns if c.get("name") != each.get("name")] + [each]
    config = {**(node.get("config") or {}), **(version.get("config") or {})}
    own_tests = any(version.get(key) is not None for key in _TESTS)
    left_out = {"versions", *(key for key in _TESTS if own_tests)}
    inherited = {key: value for key, value in node.items() if key not in left_out}
    stated = {key: value for key, value in version.items() if value}
    return {**inherited, **stated, "columns": columns, "config": config}


def _mappings(listed: Any) -> list[Any]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value is not None else []
