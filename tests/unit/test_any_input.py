"""Any YAML, JSON or setting of any shape is accepted, or refused by a sentence with its line, never by a traceback."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from importing.imported import SourceText
from importing.project import Files, ImportOptions, import_files
from sluice.approval.required import parse_approval_rules
from sluice.checks import _ALIASES, REGISTRY
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.pipeline.file import _MODELS, _check_keys, parse_pipeline
from sluice.pipeline.model import Pipeline
from sluice.registration.targets import read_targets
from sluice.settings import GROUP_OF, read_environment, read_settings

MEANT_BY_NOBODY = [
    "[[[1]]]",
    "{zz: {zz: 1}}",
    "[{a: 1}]",
    ".nan",
    ".inf",
    "-.inf",
    "1e999",
    "!!python/object:os.system {a: 1}",
    "!foo bar",
    "!!set {a, b}",
    "!!binary aGk=",
    "&a [*a]",
    "&a {b: *a}",
    "{[1]: 2}",
    "{1: 2, '1': 3}",
    "{null: 1}",
    '"\\ud800"',
    "2020-13-45",
    "[a, [b]]",
    "{a: 1, a: 2}",
]
"""Values that no key of a pipeline accepts."""
ANYTHING = [
    *MEANT_BY_NOBODY,
    "",
    "null",
    "5",
    "-1",
    "1.5",
    "0",
    "1e-5",
    "true",
    "&x true",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "text",
    "''",
    "[]",
    "{}",
    "[null]",
    "[5, a]",
    "[carat, 7]",
    "{column: [carat, 7]}",
    "{column: {a: 1}}",
    "[&a x, *a]",
    "9" * 400,
    "9" * 5000,
    "!!str 5",
    "0x1F",
    "1_000",
    "'a: b'",
    "x" * 3000,
    "'{{ partition }}'",
    "'}}{{'",
    "'SELECT'",
    "'a.b'",
    "99999999999999999999",
    "'99999999999999999999d'",
    "'${HOME}'",
    "*undefined",
    "'a\\0b'",
    '"a\\0b"',
    "a\x07",
    "[" * 60 + "]" * 60,
    "? a",
    "- a",
    "---\n",
    "'é ü 語'",
    "{interval: x, datepart: day}",
]
WHOLE_FILES = [
    "",
    "---\n",
    "- a",
    "5",
    "text",
    "null",
    "name: p\n---\nname: q",
    "\x00",
    "a: \x07",
    "%YAML 9.9\n---\na: 1",
    "<<: 5",
    "{",
    "a: 'x",
    "\ta: 1",
    "? ? a",
    "&a *a",
    "!!python/name:os.system",
    "a: 2020-02-30",
    "[" * 60,
    "<<: *a",
    "\ufeff",
]
MANY = settings(derandomize=True, deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))


def _around(where: tuple[str | int, ...]) -> str:
    """Return a pipeline with `@` in place of a mapping's content."""
    tables, write, more = "{t.x: {}}", "{source: {path: a.csv, format: csv}}", ""
    match where:
        case ("write",):
            write = "{@}"
        case ("write", "source"):
            write = "{source: {@}}"
        case ("tables", "*"):
            tables = "{t.x: {@}}"
        case ("arrival", "batch"):
            more = "arrival: {from: /x, batch: {@}}\n"
        case (key,):
            more = f"{key}: {{@}}\n"
        case _:
            return "@"
    return f"name: p\nwrite: {write}\ntables: {tables}\n{more}"


def _keys() -> Iterator[str]:
    """Yield a pipeline for each existing key, with `@` in place of its value."""
    needed = {"cron": "'0 1 * * *'", "from": "/x", "path": "a.csv"}
    for where, model in _MODELS.items():
        for name, field in model.model_fields.items():
            key = field.alias or name
            if not where:
                others = {"name": "p", "write": "{source: {path: a.csv}}", "tables": "{t.x: {}}"}
                yield "".join(f"{each}: {value}\n" for each, value in {**others, key: "@"}.items())
                continue
            beside = [k for k, f in ((f.alias or n, f) for n, f in model.model_fields.items()) if f.is_required()]
            content = ", ".join(f"{each}: {needed[each]}" for each in beside if each != key and each in needed)
            yield _around(where).replace("@", f"{content}{', ' * bool(content)}{key}: @")
    checks = "name: p\nwrite: {source: {path: a.csv}}\ntables:\n  t.x:\n    checks:\n      - "
    yield f"{checks}@\n"
    yield "name: p\nwrite: {source: {path: a.csv}}\ntables: {t.x: {checks: @}}\n"
    aliases = {alias: [*renamed] for alias, (_, renamed) in _ALIASES.items()}
    for name in [*REGISTRY, *aliases]:
        cls = REGISTRY[_ALIASES[name][0] if name in _ALIASES else name]
        yield f"{checks}{name}: @\n"
        needed_here = [k for k, f in cls.model_fields.items() if f.is_required() and k != "check"]
        for key in [*_check_keys(cls.model_fields["check"].default), *aliases.get(name, [])]:
            content = "".join(f", {each}: a" for each in needed_here if each != key)
            yield f"{checks}{name}: {{{key}: @{content}}}\n"


KEYS = [*_keys()]
OPTIONS = "name: p\nwrite: {source: {path: a.csv, options: {nullValue: @}}}\ntables: [t.x]\n"


def refused_or_whole(text: str, *, must_be_refused: bool = False) -> None:
    """Assert that a pipeline is refused with a line, or reaches a worker unchanged."""
    try:
        pipeline = parse_pipeline(text, "p.yml")
    except InvalidPipeline as error:
        assert all(re.match(r"p\.yml:\d+: \S", line) for line in str(error).splitlines() if line[:1] != " "), error
        assert len(str(error)) < 20_000
        return
    assert not must_be_refused, text[:300]
    assert Pipeline.model_validate_json(pipeline.model_dump_json(by_alias=True)) == pipeline, text[:300]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("not_null: 5", "'5' names no columns: write a column, or a list as in [a, b]"),
        ("not_null: []", "'[]' names no columns"),
        ("not_null: {column: [carat, 7]}", "input should be a valid string, not ['carat', 7]"),
        ("unique: 3", "'3' names no columns"),
        ("unique: [carat, 7]", "names no columns"),
        ("row_count: {min: .nan}", "nan is not a number that rows can be compared with"),
        ("not_null: !foo bar", "the tag '!foo' means nothing here"),
        ("dbt_utils.recency: {field: a, datepart: day, interval: x}", "the interval of a recency is a whole number"),
    ],
)
def test_a_check_of_a_wrong_shape_is_refused_with_its_line(check: str, words: str) -> None:
    text = f"name: p\nwrite: {{source: {{path: a.csv}}}}\ntables:\n  t.x:\n    checks:\n      - {check}\n"
    with pytest.raises(InvalidPipeline) as refused:
        parse_pipeline(text, "p.yml")
    assert str(refused.value).startswith("p.yml:6: ") and words in str(refused.value)


def test_options_have_texts_and_numbers_and_no_other_values() -> None:
    for value in ("null", "[1]", "{a: 1}"):
        with pytest.raises(InvalidPipeline, match="write a text, a number, true or false"):
            parse_pipeline(
                f"name: p\nwrite: {{source: {{path: a.csv, options: {{nullValue: {value}}}}}}}\ntables: [t.x]", "p"
            )


@pytest.mark.parametrize("text", WHOLE_FILES)
def test_a_file_of_any_shape_is_refused_with_a_line(text: str) -> None:
    refused_or_whole(text, must_be_refused=True)


@MANY
@given(spot=st.sampled_from(KEYS), value=st.sampled_from(ANYTHING))
def test_any_value_under_any_key_is_refused_with_a_line_or_meant(spot: str, value: str) -> None:
    refused_or_whole(spot.replace("@", value), must_be_refused=value in MEANT_BY_NOBODY)


@pytest.mark.matrix
@pytest.mark.parametrize("value", ANYTHING)
def test_every_value_under_every_key(value: str) -> None:
    for spot in KEYS:
        refused_or_whole(spot.replace("@", value), must_be_refused=value in MEANT_BY_NOBODY)


# Imports

DBT = "models:\n  - name: orders\n    columns:\n      - {name: amount, tests: [{accepted_values: {values: [1]}}]}\n"
SODA = "checks for orders:\n  - row_count > 0\n  - missing_count(id) = 0:\n      name: a\n"
SUITE = json.dumps(
    {
        "name": "s",
        "expectations": [{"type": "expect_column_values_to_be_between", "kwargs": {"column": "a", "min_value": 0}}],
    }
)
IMPORTED = {
    "dbt": (DBT, r"orders|amount|accepted_values|\[1\]|models|name|columns|tests|\{values: \[1\]\}|values"),
    "soda": (SODA, r"orders|row_count > 0|missing_count\(id\) = 0|name|\ba\b|checks for orders"),
    "suites": (SUITE, r'"s"|"a"|0|\[.*\]|\{"column".*?\}|"expect_\w+"|"kwargs"|"type"'),
}
FILES: dict[str, Callable[[SourceText], Files]] = {
    "dbt": lambda source: Files(dbt=[source]),
    "soda": lambda source: Files(soda=[source]),
    "suites": lambda source: Files(suites=[source]),
}
JSON_VALUES = [
    "null",
    "5",
    "-1",
    "1.5",
    "NaN",
    "true",
    '"x"',
    "[]",
    "{}",
    "[[1]]",
    '{"a": {"b": 1}}',
    "9" * 400,
    "[null]",
]


def imported_or_refused(kind: str, text: str) -> None:
    """Assert that a file is imported and leftovers are named, or that it is refused by a sentence."""
    for lenient in (False, True):
        try:
            done = import_files(FILES[kind](SourceText("in.file", text)), ImportOptions("shop"), lenient=lenient)
        except InvalidPipeline as error:
            assert "in.file" in str(error) and not lenient
        else:
            assert all(str(each) for each in done.left)


@MANY
@given(data=st.data())
def test_any_value_in_a_file_to_import_is_left_with_a_reason(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*IMPORTED]))
    text, spots = IMPORTED[kind]
    spot = data.draw(st.sampled_from([*re.finditer(spots, text)]))
    value = data.draw(st.sampled_from(JSON_VALUES if kind == "suites" else ANYTHING))
    imported_or_refused(kind, text[: spot.start()] + value + text[spot.end() :])


@pytest.mark.parametrize("kind", IMPORTED)
def test_a_file_to_import_of_any_shape_is_refused_or_left(kind: str) -> None:
    for text in [*WHOLE_FILES, *JSON_VALUES]:
        imported_or_refused(kind, text)


# Settings

TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "5",
            "-1",
            "nan",
            "inf",
            "1e400",
            "9" * 400,
            "true",
            "~nosuch/x",
            "a b",
            "[]",
            "{}",
            "é",
            "x" * 3000,
            "http://",
        ]
    ),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20),
)


@MANY
@given(name=st.sampled_from([*GROUP_OF]), value=TEXTS)
def test_any_value_of_a_setting_is_refused_by_its_name_or_finite(name: str, value: str) -> None:
    try:
        read = read_settings({name.upper(): value})
    except BadEnvironment as error:
        assert name.upper() in str(error)
    else:
        values = [value for group in read.model_dump().values() for value in group.values()]
        assert all(abs(each) < 1e10 for each in values if isinstance(each, float))


STACKS = [*WHOLE_FILES, "[]", '{"environment": [1]}', '{"environment": {"NESSIE_URI": 5}}', "[" * 5000]


@pytest.mark.parametrize("text", STACKS)
def test_files_of_the_environment_of_any_shape(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    (tmp_path / "stack.json").write_text(text)
    (tmp_path / ".env").write_text(text)
    assert read_environment()["SLUICE_HOME"] == str(tmp_path)
    (tmp_path / ".env").write_bytes(b"A=\xff\xfe")
    with pytest.raises(BadEnvironment, match=r"\.env: it is not text in UTF-8"):
        read_environment()
    assert os.environ["SLUICE_HOME"]


TARGETS = [*WHOLE_FILES, *(f"targets: {each}" for each in ANYTHING), *(f"targets: {{a: {each}}}" for each in ANYTHING)]


@pytest.mark.parametrize("text", TARGETS)
def test_a_file_of_targets_of_any_shape_is_refused_by_a_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "targets.yml"
    file.write_text(text)
    try:
        read_targets(str(file))
    except BadEnvironment as error:
        assert "SLUICE_TARGETS_FILE" in str(error)


@MANY
@given(text=TEXTS)
def test_any_rules_of_approval_are_refused_by_a_sentence(text: str) -> None:
    for parse in (parse_approval_rules, read_targets):
        refuse: Callable[[str], object] = parse
        try:
            refuse(text)
        except BadEnvironment as error:
            assert str(error)
