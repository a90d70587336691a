"""The targets of an installation: valid content of their file, permission to name them, and their publications."""

from pathlib import Path

import pytest

from runtime.pipeline.pipeline_input import load_pipeline
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.registration.target_kinds import CommandTarget, SecretSource
from sluice.registration.targets import NO_TARGETS, Targets, read_targets
from sluice.settings import Settings

HOOK = "{kind: webhook, url: 'https://h.example/x', secret: {env: HOOK}}"
PIPELINE = "name: p\nwrite: {job: JOB}\ntables: {t.x: {}}\n"


def targets(text: str, folder: Path) -> Targets:
    file = folder / "targets.yml"
    file.write_text(f"targets:\n{text}")
    return read_targets(str(file))


def test_without_a_file_there_are_none() -> None:
    assert read_targets("") == NO_TARGETS


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a: {kind: webhook, url: 'https://h/x', secret: s3cr3t-value}", "do not write a secret into this file"),
        ("a: {kind: webhook, url: 'https://h/x', secret: {}}", "name one source of the secret"),
        ("a: {kind: webhook, url: 'https://h/x', secret: {env: A, file: b}}", "name one source of the secret"),
        ("a: {kind: webhook, url: 'https://u:s3cr3t-value@h/x', secret: {env: A}}", "contains a user or a password"),
        ("a: {kind: webhook, url: 'http://h.example/s3cr3t-value', secret: {env: A}}", "is not encrypted"),
        ("a: {kind: webhook, url: 'file:///etc/s3cr3t-value', secret: {env: A}}", "is not an address"),
        ("a: {kind: webhook, secret: {env: A}}", "a.webhook.url: Field required"),
        ("a: {kind: command, command: [announce]}", "is not an absolute path"),
        ("a: {kind: command, command: []}", "at least 1 item"),
        ("a: {kind: command, command: [/bin/true], timeout: 1h}", "less than or equal to 600"),
        ("a: {kind: command, command: /bin/true}", "should be a list"),
        ("a: {kind: carrier-pigeon}", "does not match any of the expected tags"),
        ("'a b': {kind: command, command: [/bin/true]}", "is not a valid name of a target"),
        ("a: {kind: command, command: [/bin/true], tables: ['t.x; drop']}", "match pattern"),
        ("a: {kind: command, command: [/bin/true], shell: true}", "Extra inputs"),
        ("a: [", "targets.yml"),
    ],
)
def test_a_file_that_is_wrong_is_one_message_without_what_may_be_secret(line: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment) as refused:
        targets(f"  {line}\n", tmp_path)
    message = str(refused.value)
    assert why in message and "SLUICE_TARGETS_FILE=" in message
    assert "s3cr3t" not in message


def test_a_file_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match="No such file"):
        read_targets(str(tmp_path / "none.yml"))
    with pytest.raises(BadEnvironment, match="larger than"):
        targets("#" * 1024**2, tmp_path)


def test_a_target_shows_neither_its_address_nor_its_secret(tmp_path: Path) -> None:
    shown = repr(targets(f"  a: {HOOK}\n", tmp_path))
    assert "h.example" not in shown and "HOOK" not in shown


def test_a_secret_is_read_when_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("one\n")
    source = SecretSource(file=str(file))
    assert source.read({}) == "one"
    file.write_text("two\n")
    assert source.read({}) == "two"
    assert SecretSource(env="A").read({"A": " three "}) == "three"
    with pytest.raises(BadEnvironment, match="the variable A"):
        SecretSource(env="A").read({})


def test_a_publication_gets_the_targets_that_are_named_and_those_that_want_its_tables() -> None:
    def command(*tables: str) -> CommandTarget:
        return CommandTarget(kind="command", command=["/bin/true"], tables=list(tables))

    known = Targets(targets={"named": command(), "sales": command("shop.*"), "other": command("nyc.*")})
    assert known.of_publication(["named"], ["Shop.Orders"]) == ["named", "sales"]
    assert known.of_publication([], ["t.x"]) == []
    assert known.of_publication(["sales"], ["shop.a", "shop.b"]) == ["sales"]
    assert command("shop.*").tables_of(["shop.a", "t.x"], is_named=False) == ["shop.a"]
    assert command("shop.*").tables_of(["shop.a", "t.x"], is_named=True) == ["shop.a", "t.x"]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("[a, a]", "'a' is named twice"),
        ("['a/b']", "is not a valid name of a target"),
        ("[{webhook: 'https://h/x'}]", "should be a text"),
        ("a", "should be a list"),
        (str([f"t{n}" for n in range(21)]), "21 targets are too many"),
    ],
)
def test_a_pipeline_only_names_targets(written: str, why: str) -> None:
    with pytest.raises(InvalidPipeline, match=rf"p.yml:4: after_publish.*{why}"):
        parse_pipeline(PIPELINE + f"after_publish: {written}\n", "p.yml")


def test_a_start_names_the_line_of_a_target_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    (tmp_path / "targets.yml").write_text(f"targets: {{search: {HOOK}}}")
    file = tmp_path / "p.yml"
    file.write_text(PIPELINE.replace("JOB", "job.py") + "after_publish: [serch]\n")
    environment = {"SLUICE_TARGETS_FILE": str(tmp_path / "targets.yml")}
    with pytest.raises(InvalidPipeline, match=r"p.yml:4: .*no target 'serch' \(did you mean 'search'\?\)"):
        load_pipeline(file, environment, tmp_path)
    not_here = {"SLUICE_TARGETS_FILE": "/nonexistent/targets.yml"}  # a worker has it, but this machine does not
    assert load_pipeline(file, not_here, tmp_path).after_publish == ["serch"]


def test_the_setting_is_empty_by_default() -> None:
    assert Settings().registration.sluice_targets_file == ""
