"""Resolve `{{ … }}` in dbt's files, as far as possible without running dbt.

Jinja runs in its sandbox: a foreign file can reach only the values that are given here.
"""

import datetime
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from jinja2 import StrictUndefined
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from importing.imported import NotCarriedOver

_REFERENCE = re.compile(r"\s*(?:ref|source)\s*\(.*\)\s*", re.DOTALL)
_TYPES = {
    "type_timestamp": "timestamp",
    "type_datetime": "timestamp",
    "type_string": "string",
    "type_int": "int",
    "type_bigint": "bigint",
    "type_float": "double",
    "type_numeric": "decimal(28,6)",
    "type_boolean": "boolean",
}
_LIMIT = 100_000
"""Maximum length of a resolved text, in characters, and maximum factor of a repeated text or list."""


class Relation(str):
    """A table that dbt refers to, or some of its rows, as text for SQL."""

    def __new__(cls, table: str, rows: str = "") -> "Relation":
        """Create the text. `rows` is a query of some rows of the table, in parentheses."""
        text = super().__new__(cls, rows or table)
        text.schema, _, text.identifier = table.rpartition(".")
        text.name = text.table = text.alias = text.identifier
        text.database = ""
        return text

    schema: str
    identifier: str
    name: str
    alias: str
    table: str
    database: str


class MissingArgument(StrictUndefined):
    """An argument that a test omits. A macro may test if it is given, but may not write it into SQL."""

    def __bool__(self) -> bool:  # type: ignore[override]  # there it raises
        return False


class Package:
    """The known macros of a package, as attributes."""

    def __init__(self, name: str, known: Mapping[str, Any]) -> None:
        self.__dict__.update(known)
        self._name = name

    def __getattr__(self, macro: str) -> Any:
        if macro.startswith("_"):
            raise AttributeError(macro)
        raise NotCarriedOver(f"it needs the macro {self._name}.{macro}, which only dbt has")


class ConnectionTarget:
    """The target of dbt's profile: its type, its schema and, if given, its name. The rest is not known."""

    def __init__(self, schema: str, name: str | None) -> None:
        self.type, self.schema = "spark", schema
        if name is not None:
            self.name = self.target_name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        if attribute in ("name", "target_name"):
            raise NotCarriedOver("it depends on `target.name`: say which target it is with --target")
        raise NotCarriedOver(f"it depends on `target.{attribute}`, which only a profile of dbt states")


class Sandbox(SandboxedEnvironment):
    """Jinja's sandbox, which also refuses products and powers that make a huge value."""

    intercepted_binops = frozenset(["*", "**"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply values. Refuse a power, and a text or list times a large number."""
        if operator == "**" or (not isinstance(left, int | float) and isinstance(right, int) and right > _LIMIT):
            raise OverflowError("the value is too large")
        if isinstance(left, int) and not isinstance(right, int | float) and left > _LIMIT:
            raise OverflowError("the value is too large")
        return super().call_binop(context, operator, left, right)


class SandboxedValues(Sandbox, NativeEnvironment):
    """The sandbox whose results are values, not only text."""


def plain_identifier(name: str) -> str:
    """Return a name with `_` in place of characters that a table's name may not contain."""
    return re.sub(r"\W", "_", name)


class DbtValues:
    """Values that `{{ … }}` in dbt's files can refer to: variables, tables, the target, types and times."""

    def __init__(self, namespace: str, variables: Mapping[str, Any], target: str | None = None) -> None:
        self.namespace = namespace
        self.target = ConnectionTarget(namespace, target)
        self.variables = dict(variables)
        self.models: dict[str, str] = {}
        """The tables of models whose name differs from that of their table: an alias, or the latest version."""
        self.sources: dict[tuple[str, str], str] = {}
        self.unknown_tables: dict[str, str] = {}
        """The reasons why some of these tables have no known name, by table."""
        self.environment = SandboxedValues(undefined=StrictUndefined)
        self.environment.globals.update(self._globals())
        self.macro_environment = Sandbox(undefined=MissingArgument, extensions=["jinja2.ext.do"])
        self.macro_environment.globals = self.environment.globals
        for environment in (self.environment, self.macro_environment):
            environment.filters.update(as_bool=_as_bool, as_number=_as_number, as_native=_same, as_text=str)

    def resolve(self, value: Any) -> Any:
        """Resolve every `{{ … }}`, and every bare `ref(…)`, in a value.

        Raises:
            NotCarriedOver: it refers to something that only dbt knows.
        """
        if isinstance(value, dict):
            return {key: self.resolve(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.resolve(each) for each in value]
        if not isinstance(value, str):
            return value
        text = str(value)
        if "{{" not in text and "{%" not in text:
            if not _REFERENCE.fullmatch(text):
                return text
            text = f"{{{{ {text.strip()} }}}}"
        return self._rendered(text)

    def _rendered(self, text: str) -> Any:
        try:
            result = self.environment.from_string(text).render()
            if result is not None and not isinstance(result, str | int | float | bool | list | dict):
                result = str(result)
        except NotCarriedOver:
            raise
        except Exception as error:  # a template is a foreign program, and may raise anything
            raise NotCarriedOver(f"{text.strip()[:80]} is known to dbt alone: {str(error)[:120]}") from error
        if isinstance(result, str) and len(result) > _LIMIT:
            raise NotCarriedOver(f"{text[:80]} is too long when it is resolved")
        return result

    def table_of(self, *names: Any, v: Any = None, version: Any = None) -> Relation:
        """Return the table of a model: `ref('model')`, `ref('package', 'model')`."""
        name = str(names[-1])
        wanted = version if v is None else v
        if wanted is not None:
            default = f"{self.namespace}.{plain_identifier(name)}_v{wanted}"
            return self._relation(self.models.get(f"{name}.v{wanted}", default))
        return self._relation(self.models.get(name, f"{self.namespace}.{plain_identifier(name)}"))

    def source_of(self, source: Any, table: Any) -> Relation:
        """Return the table of a source: `source('shop', 'orders')`."""
        default = f"{plain_identifier(str(source))}.{plain_identifier(str(table))}"
        return self._relation(self.sources.get((str(source), str(table)), default))

    def _relation(self, table: str) -> Relation:
        if table in self.unknown_tables:
            raise NotCarriedOver(f"it refers to another table: {self.unknown_tables[table]}")
        return Relation(table)

    def _variable(self, name: str, default: Any = None) -> Any:
        if name in self.variables:
            return self.variables[name]
        if default is None:
            raise NotCarriedOver(f"the variable {name!r} has no default")
        return default

    def _environment_variable(self, name: str, default: Any = None) -> Any:
        if default is None:
            raise NotCarriedOver(f"the environment variable {name!r} has no default")
        return default

    def _globals(self) -> dict[str, Any]:
        types = {name: (lambda kind=kind: kind) for name, kind in _TYPES.items()}
        times = {
            "now": lambda *_: "current_timestamp()",
            "today": lambda *_: "current_date()",
            "yesterday": lambda *_: "date_sub(current_date(), 1)",
            "tomorrow": lambda *_: "date_add(current_date(), 1)",
            "n_days_ago": lambda days, *_: f"date_sub(current_date(), {days})",
            "current_timestamp": lambda *_: "current_timestamp()",
        }
        functions = {
            "dateadd": lambda part, count, time: f"({time} + INTERVAL '{count}' {str(part).upper()})",
            "date_trunc": lambda part, time: f"date_trunc('{str(part).upper()}', {time})",
            "datediff": lambda first, second, part: f"timestampdiff({str(part).upper()}, {first}, {second})",
            "safe_cast": lambda field, kind: f"try_cast({field} AS {kind})",
            "length": lambda text: f"length({text})",
            "concat": lambda fields: f"concat({', '.join(map(str, fields))})",
            "string_literal": lambda text: f"'{text}'",
            "hash": lambda text: f"md5(CAST({text} AS STRING))",
        }
        known = {**types, **times, **functions}
        packages = {name: Package(name, known) for name in ("dbt", "dbt_utils", "dbt_expectations", "dbt_date")}
        moments = SimpleNamespace(
            datetime=datetime.datetime, date=datetime.date, timedelta=datetime.timedelta, timezone=datetime.timezone
        )
        patterns = SimpleNamespace(match=re.match, search=re.search, sub=re.sub, fullmatch=re.fullmatch)
        return {
            "ref": self.table_of,
            "source": self.source_of,
            "var": self._variable,
            "env_var": self._environment_variable,
            "target": self.target,
            "modules": SimpleNamespace(datetime=moments, re=patterns),
            "api": SimpleNamespace(Column=SimpleNamespace(translate_type=_same)),
            **packages,
            "current_timestamp": times["current_timestamp"],
            "execute": True,
        }


def _as_bool(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() == "true"


def _as_number(value: Any) -> Any:
    return float(value) if "." in str(value) else int(value)


def _same(value: Any) -> Any:
    return value
