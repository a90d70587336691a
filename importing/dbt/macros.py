"""Render the SQL of generic tests that a dbt project defines, by running their Jinja in a sandbox."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from jinja2 import Environment, TemplateError

from importing.dbt.jinja_values import DbtValues
from importing.imported import NotCarriedOver, SourceText

_HEAD = re.compile(r"\s*(?P<kind>test|macro)\s+(?P<name>\w+)\s*\((?P<parameters>.*)\)\s*", re.DOTALL)
_RUNS_QUERIES = re.compile(r"run_query|statement|adapter\.(?!dispatch|quote|type)|graph\.|load_result")
_LEXER = Environment(keep_trailing_newline=True).lexer
_EXPORTED = "m_"
"""Prefix of the names of macros. Jinja does not export names that begin with an underscore."""


class _Returned(Exception):
    """Raised by dbt's `return(…)` to end a macro with a value."""

    def __init__(self, value: Any) -> None:
        super().__init__("returned")
        self.value = value


class DbtMacros:
    """The macros of a project by name, and the settings that a test makes while its SQL is rendered.

    A macro that the project does not define itself may come from another imported project.
    """

    def __init__(self, values: DbtValues, files: Iterable[SourceText], others: Iterable[SourceText] = ()) -> None:
        self._values = values
        self._macros: dict[str, Callable[..., Any]] = {}
        self._texts: dict[str, str] = {}
        self.config: dict[str, Any] = {}
        """Settings that the last test made by `config(…)`: its severity or thresholds."""
        self._files, self._others = list(files), list(others)
        self._own: frozenset[str] = frozenset()
        self._ambiguous: set[str] = set()
        self._is_compiled = False

    def defines(self, test: str) -> bool:
        """Return True if the project, or another imported project, defines a generic test."""
        self._compile()
        return f"test_{test}" in self._texts

    def overrides(self, test: str) -> bool:
        """Return True if the project itself defines a generic test, which dbt prefers to its own test of that name."""
        self._compile()
        return f"test_{test}" in self._own

    def query(self, test: str, arguments: Mapping[str, Any]) -> str:
        """Return the SQL of a generic test, which returns the bad rows.

        Raises:
            NotCarriedOver: it needs something that only dbt has.
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
            raise NotCarriedOver(f"the project's test {test} cannot be resolved: {_problem(error)}") from error

    def singular(self, text: str, tables: list[str]) -> tuple[str, dict[str, Any]]:
        """Return the SQL of a singular test and its `config(…)`, and add the tables that it refers to to `tables`.

        Raises:
            NotCarriedOver: it needs something that only dbt has.
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
            raise NotCarriedOver(f"it cannot be resolved: {_problem(error)}") from error
        return query, self.config

    def _compile(self) -> None:
        if self._is_compiled:
            return
        self._is_compiled = True
        self._texts.update(_definitions_of(reversed(self._files)))  # the first definition counts
        self._own = frozenset(self._texts)
        for name, text in _definitions_of(self._others):
            if self._texts.setdefault(name, text) != text and name not in self._own:
                self._ambiguous.add(name)
        environment = self._values.macro_environment
        for name in self._texts:
            environment.globals.setdefault(name, partial(self._call, name))
        environment.globals.update({"return": _return, "config": self._set, "adapter": _Adapter(self)})
        environment.globals["exceptions"] = _Exceptions()

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._macro(name)(*args, **kwargs)  # compiled at its first call

    def _macro(self, name: str) -> Callable[..., Any]:
        if name not in self._macros:
            if name not in self._texts:
                raise NotCarriedOver(f"the macro {name} is not part of the project")
            if name in self._ambiguous:
                raise NotCarriedOver(f"several other projects define {name.removeprefix('test_')} in different ways")
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


def _definitions_of(files: Iterable[SourceText]) -> Iterator[tuple[str, str]]:
    for file in files:
        yield from reversed(_definitions(file.text))


@lru_cache(4096)
def _definitions(text: str) -> tuple[tuple[str, str], ...]:
    """Return the name and the text of each macro and test of a file, without those in comments."""
    definitions, head, body = [], None, [""]
    for statement, piece in _pieces(text):
        if head is None:
            head, body = _HEAD.fullmatch(statement), []
        elif statement.strip() == f"end{head['kind']}":
            name = f"test_{head['name']}" if head["kind"] == "test" else head["name"]
            start = f"{{% macro {_EXPORTED}{name}({head['parameters']}) %}}"
            definitions.append((name, f"{start}{''.join(body)}{{% endmacro %}}"))
            head = None
        else:
            body.append(piece)
    return tuple(definitions)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the content of each statement, or an empty text, with its piece of the template. Skip comments."""
    statement: list[str] | None = None
    try:
        for _, kind, value in _LEXER.tokeniter(text, None):
            if kind == "block_begin":
                statement = [value]
            elif kind == "block_end" and statement is not None:
                yield "".join(statement[1:]), "".join([*statement, value])
                statement = None
            elif statement is not None:
                statement.append(value)
            elif not kind.startswith("comment"):
                yield "", value
    except TemplateError:
        return  # dbt reads nothing of such a file; the pieces before the error are used here


def _problem(error: Exception) -> str:
    return "it needs too much memory" if isinstance(error, MemoryError) else str(error)[:160] or type(error).__name__


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
