"""Any pipeline of any shape is accepted, or refused by a sentence with its line, never by a traceback."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.checks.registry import _ALIASES, REGISTRY
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import _MODELS, _check_keys, parse_pipeline
from sluice.pipeline.model import Pipeline
from tests.harness.any_values import ANYTHING, MANY, MEANT_BY_NOBODY, WHOLE_FILES


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
        ("not_null: {column: [carat, 7]}", "input should be a text, not ['carat', 7]"),
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


def test_a_message_shows_no_character_that_moves_a_terminal() -> None:
    for value in ('"\\e[2J"', '"\\u2028"'):
        with pytest.raises(InvalidPipeline) as refused:
            parse_pipeline(f"name: p\nwrite: {{source: {value}}}\ntables: [t.x]\n", "p.yml")
        assert all(line.isprintable() for line in str(refused.value).split("\n")), refused.value


def test_a_key_that_is_no_text_in_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidPipeline, match=r"^p\.yml:1: .*unpaired surrogate"):
        parse_pipeline('write: {job: a.py, conf: {"\\ud800": 1}}\nname: p\ntables: [t.x]\n', "p.yml")


def test_options_have_texts_and_numbers_and_no_other_values() -> None:
    for value in ("null", "[1]", "{a: 1}"):
        with pytest.raises(InvalidPipeline, match="write a text, a number, true or false"):
            parse_pipeline(
                f"name: p\nwrite: {{source: {{path: a.csv, options: {{nullValue: {value}}}}}}}\ntables: [t.x]", "p"
            )


@pytest.mark.parametrize("text", WHOLE_FILES)
def test_a_file_of_any_shape_is_refused_with_a_line(text: str) -> None:
    refused_or_whole(text, must_be_refused=True)


@pytest.mark.parametrize("value", MEANT_BY_NOBODY)
def test_a_value_that_nobody_means_is_refused_with_its_line(value: str) -> None:
    """Earlier versions ended with a traceback for `!!bool 5`, `&a {<<: *a}` and a date after the year 9999."""
    with pytest.raises(InvalidPipeline, match=r"^p\.yml:4: "):
        parse_pipeline(
            f"name: p\nwrite: {{source: {{path: a.csv}}}}\ntables: {{t.x: {{}}}}\ndescription: {value}\n", "p.yml"
        )


@MANY
@given(spot=st.sampled_from(KEYS), value=st.sampled_from(ANYTHING))
def test_any_value_under_any_key_is_refused_with_a_line_or_meant(spot: str, value: str) -> None:
    refused_or_whole(spot.replace("@", value), must_be_refused=value in MEANT_BY_NOBODY)


@pytest.mark.matrix
@pytest.mark.parametrize("value", ANYTHING)
def test_every_value_under_every_key(value: str) -> None:
    for spot in KEYS:
        refused_or_whole(spot.replace("@", value), must_be_refused=value in MEANT_BY_NOBODY)
