"""Generic tests that a dbt project defines itself: their SQL, made by running their Jinja in a sandbox."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from sluice.importing.imported import NotCarriedOver, SourceText
from sluice.importing.jinja_values import DbtValues

_BLOCK = re.compile(
    r"\{%-?\s*(?P<kind>test|macro)\s+(?P<name>\w+)\s*\((?P<parameters>.*?)\)\s*-?%\}(?P<body>.*?)"
    r"\{%-?\s*end(?P=kind)\s*-?%\}",
    re.DOTALL,
)
_RUNS_QUERIES = re.compile(r"run_query|statement|adapter\.(?!dispatch|quote|type)|graph\.|load_result")
_EXPORTED = "m_"
"""What the names of macros begin with here: Jinja keeps those that begin with an underscore to itself."""


class _Returned(Exception):
    """What `return(…)` of dbt does in a macro: it ends it with a value."""

    def __init__(self, value: Any) -> None:
        super().__init__("returned")
        self.value = value


class DbtMacros:
    """The macros of a project by name, and the settings that a test makes while its SQL is made."""

    def __init__(self, values: DbtValues, files: Iterable[SourceText]) -> None:
        self._values = values
        self._macros: dict[str, Callable[..., Any]] = {}
        self._texts: dict[str, str] = {}
        self.config: dict[str, Any] = {}
        """What the last test set by `config(…)`: its severity or thresholds."""
        self._files = list(files)
        self._is_compiled = False

    def defines(self, test: str) -> bool:
        """Return whether the project defines a generic test."""
        self._compile()
        return f"test_{test}" in self._texts

    def query(self, test: str, arguments: Mapping[str, Any]) -> str:
        """Return the SQL of a generic test, which returns the bad rows.

        Raises:
            NotCarriedOver: it needs what only dbt has.
        """
        self._compile()
        name = f"test_{test}"
        if runs := _RUNS_QUERIES.search(self._texts[name]):
            raise NotCarriedOver(f"the project's test {test} uses {runs[0]}, which only dbt has")
        self.config = {}
        try:
            return str(self._macro(name)(**arguments)).strip()
        except NotCarriedOver:
            raise
        except Exception as error:  # a template may raise anything
            raise NotCarriedOver(f"the project's test {test} cannot be resolved: {str(error)[:160]}") from error

    def singular(self, text: str, tables: list[str]) -> tuple[str, dict[str, Any]]:
        """Return the SQL of a singular test and what it sets by `config(…)`; collect the tables that it refers to.

        Raises:
            NotCarriedOver: it needs what only dbt has.
        """
        self._compile()
        if runs := _RUNS_QUERIES.search(text):
            raise NotCarriedOver(f"it uses {runs[0]}, which only dbt has")
        values, self.config = self._values, {}

        def noted(function: Callable[..., str]) -> Callable[..., str]:
            def call(*args: Any, **kwargs: Any) -> str:
                table = function(*args, **kwargs)
                tables.append(table)
                return table

            return call

        given = {"ref": noted(values.table_of), "source": noted(values.source_of)}
        try:
            query = values.macro_environment.from_string(text).render(given)
        except NotCarriedOver:
            raise
        except Exception as error:  # a template may raise anything
            raise NotCarriedOver(f"it cannot be resolved: {str(error)[:160]}") from error
        return query, self.config

    def _compile(self) -> None:
        if self._is_compiled:
            return
        self._is_compiled = True
        for file in self._files:
            for block in _BLOCK.finditer(file.text):
                name = f"test_{block['name']}" if block["kind"] == "test" else block["name"]
                head = f"{{% macro {_EXPORTED}{name}({block['parameters']}) %}}"
                self._texts.setdefault(name, f"{head}{block['body']}{{% endmacro %}}")
        environment = self._values.macro_environment
        for name in self._texts:
            environment.globals.setdefault(name, partial(self._call, name))
        environment.globals.update({"return": _return, "config": self._set, "adapter": _Adapter(self)})
        environment.globals["exceptions"] = _Exceptions()

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._macro(name)(*args, **kwargs)  # compiled when it is called first

    def _macro(self, name: str) -> Callable[..., Any]:
        if name not in self._macros:
            if name not in self._texts:
                raise NotCarriedOver(f"the macro {name} is not part of the project")
            module = self._values.macro_environment.from_string(self._texts[name]).module
            macro = getattr(module, f"{_EXPORTED}{name}")

            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    return macro(*args, **kwargs)
                except _Returned as returned:
                    return returned.value

            self._macros[name] = call
        return self._macros[name]

    def _set(self, **settings: Any) -> str:
        self.config.update(settings)
        return ""

    def dispatch(self, name: str, *_: Any, **__: Any) -> Callable[..., Any]:
        """Return the implementation of a macro for Spark, or the default one."""
        for prefix in ("spark__", "databricks__", "default__"):
            if f"{prefix}{name}" in self._texts:
                return self._macro(f"{prefix}{name}")
        return self._macro(name)


class _Adapter:
    def __init__(self, macros: DbtMacros) -> None:
        self.dispatch = macros.dispatch

    @staticmethod
    def quote(name: str) -> str:
        return f"`{name}`"

    @staticmethod
    def type() -> str:
        return "spark"


class _Exceptions:
    @staticmethod
    def raise_compiler_error(message: str) -> str:
        raise NotCarriedOver(str(message)[:200])

    @staticmethod
    def warn(_: str) -> str:
        return ""


def _return(value: Any = None) -> Any:
    raise _Returned(value)
