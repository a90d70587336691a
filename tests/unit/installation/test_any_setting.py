"""Settings, and files that settings name, of any shape are accepted, or refused by a sentence, never by a traceback."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.approval.required import parse_approval_rules
from sluice.environment_files import read_environment
from sluice.errors import BadEnvironment
from sluice.notifications.routes import parse_routes
from sluice.registration.targets import read_targets
from sluice.settings import GROUP_OF, read_settings
from tests.harness.any_values import ANYTHING, MANY, WHOLE_FILES

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


@pytest.mark.parametrize("name", GROUP_OF)
def test_a_setting_of_another_form_is_refused_with_a_valid_example(name: str) -> None:
    try:
        read_settings({name.upper(): "two words; and more"})
    except BadEnvironment as error:
        assert "should match" not in str(error) and "unable to parse" not in str(error), error
        if "write it as in" in str(error):
            example = str(error).partition("write it as in ")[2]
            assert name.upper() not in _problems({name.upper(): example})


def _problems(environment: dict[str, str]) -> str:
    try:
        read_settings(environment)
    except BadEnvironment as error:
        return str(error)
    return ""


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


@pytest.mark.parametrize("value", [*WHOLE_FILES, *ANYTHING])
def test_routes_of_any_shape_are_refused_by_a_sentence(value: str) -> None:
    for text in (value, f"- {value}", f"- {{to: {value}}}", f"- {{to: slack, pipelines: {value}}}"):
        try:
            parse_routes(text, "routes.yml", {})
        except BadEnvironment as error:
            assert "routes.yml" in str(error)


@MANY
@given(text=TEXTS)
def test_any_rules_of_approval_are_refused_by_a_sentence(text: str) -> None:
    for parse in (parse_approval_rules, read_targets):
        refuse: Callable[[str], object] = parse
        try:
            refuse(text)
        except BadEnvironment as error:
            assert str(error)
