"""The merge commit in a pipeline: permitted options, the parts that a start replaces, and the commit's content."""

import subprocess
import sys
from pathlib import Path

import pytest

from devstack.stack import ROOT
from runtime.run.start_run import _difference
from sluice.checks.verdicts import AuditReport
from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.references import RunRef
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import MAX_ENTRIES, MAX_MESSAGE, MAX_VALUE, PublishOptions, changed_options
from sluice.publishing.certificate import (
    approved_properties,
    certificate,
    merge_message,
    stated_options,
    unapproved_properties,
)
from sluice.publishing.commit_properties import APPROVED, METADATA, ROLLBACK_PIPELINE
from sluice.publishing.rollback import rollback_pipeline

FILE = "name: p\nwrite: {job: j.py}\ntables: [t.x]\n"
RUN = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
REPORT = AuditReport(branch="b", audited_hash="h", checks=[])
STATED = PublishOptions(message="Correct May", metadata={"owner": "ana", "ticket": "F-1"})


def read(publish: str) -> PublishOptions:
    return parse_pipeline(f"{FILE}publish: {publish}\n", "p.yml").publish


def pipeline(options: PublishOptions = STATED, **more: object) -> Pipeline:
    fields = {"name": "p", "write": {"job": "j.py"}, "tables": ["t.x"], "publish": options, **more}
    return Pipeline.model_validate(fields)


def request(of: Pipeline | None = None, **more: object) -> RunRequest:
    plain = RunRequest(pipeline=of or pipeline(), input=RunInput(digest="d"), starter="s")
    return plain.model_copy(update=more)


def commit(of: RunRequest) -> dict[str, str]:
    return certificate(of, RUN, REPORT, [])


def test_what_a_pipeline_says() -> None:
    assert read(
        "{message: '  Load May\n\n  again ', metadata: {a: x, b: true, c: 3, d: 2026-01-31}}"
    ) == PublishOptions(message="Load May\nagain", metadata={"a": "x", "b": "true", "c": "3", "d": "2026-01-31"})
    assert read("{metadata: {version: '1.10'}}").metadata == {"version": "1.10"}
    assert read("{message: 'Näytä {run_id} $HOME {{ 1 }} 🎬'}").message == "Näytä {run_id} $HOME {{ 1 }} 🎬"
    for nothing in ("", "{}", "{message: , metadata: }", "{message: '  '}"):
        assert read(nothing) == PublishOptions()


@pytest.mark.parametrize(
    ("publish", "message"),
    [
        ("hello", "p.yml:4: publish: write a mapping, as in {message: "),
        ("{mesage: x}", "unknown key 'mesage' (did you mean 'message'?); valid keys: message, metadata"),
        ("{message: 3}", "publish.message: a message is a text, not 3: put it in quotes"),
        (f"{{message: {'x' * (MAX_MESSAGE + 1)}}}", "a message of 2,001 characters is too long: the limit is 2,000"),
        ('{message: "a\\e[2Kb"}', "the message contains the control character U+001B"),
        ('{message: "a\\u202Eb"}', "the message contains the control character U+202E"),
        ('{message: "a\\uD800b"}', "'a\\ud800b' contains an unpaired surrogate (U+D800 to U+DFFF): leave it out"),
        ('{message: "a\\rb"}', "the message contains the control character U+000D"),
        ("{metadata: [a, b]}", "write a mapping of keys to values"),
        ("{metadata: {a: [1]}}", "'a' is a list: give a text, a number, true or false"),
        ("{metadata: {a: {b: 1}}}", "'a' is a mapping"),
        ("{metadata: {a: }}", "'a' has no value"),
        ('{metadata: {a: "x\\ny"}}', "'a' contains the control character U+000A"),
        (f"{{metadata: {{a: {'x' * (MAX_VALUE + 1)}}}}}", "'a' has 1,001 characters: the limit is 1,000"),
        ("{metadata: {a b: 1}}", "'a b' is not a valid metadata key: write letters, digits"),
        ("{metadata: {'': 1}}", "'' is not a valid metadata key"),
        ("{metadata: {.a: 1}}", "'.a' is not a valid metadata key"),
        (f"{{metadata: {{{'k' * 101}: 1}}}}", "is not a valid metadata key"),
        (f"{{metadata: {{{', '.join(f'k{n}: 1' for n in range(MAX_ENTRIES + 1))}}}}}", "51 entries are too many"),
        (f"{{metadata: {{{', '.join(f'k{n}: {chr(0x4E00) * 900}' for n in range(7))}}}}}", "bytes of metadata are too"),
        (f"{{metadata: {{a: {'1' * 5000}}}}}", "cannot be read: Exceeds the limit"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_valid(publish: str, message: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        read(publish)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 400


def test_a_start_replaces_the_message_and_adds_metadata() -> None:
    assert changed_options(STATED, None, []) == STATED
    assert changed_options(STATED, "Again", ["ticket=F-2", "why=a=b"]) == PublishOptions(
        message="Again", metadata={"owner": "ana", "ticket": "F-2", "why": "a=b"}
    )
    assert changed_options(STATED, "", []).message == ""


@pytest.mark.parametrize(
    ("message", "entries", "problem"),
    [
        (None, ["owner"], "--metadata 'owner': write KEY=VALUE"),
        (None, ["a=1", "a=2"], "--metadata 'a': the key is given twice"),
        (None, ["=1"], "--metadata: '' is not a valid metadata key"),
        (None, ["a=\x1b[2K"], "--metadata: 'a' contains the control character U+001B"),
        ("\udcff", [], "--message: the message contains the control character U+DCFF"),
        ("x" * 2001, [], "--message: a message of 2,001 characters is too long"),
    ],
)
def test_a_mistake_of_a_start_names_its_option(message: str | None, entries: list[str], problem: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        changed_options(STATED, message, entries)
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--metadata", "owner"), "--metadata 'owner': write KEY=VALUE"),
        (("--message", "x", "--no-publish"), "--no-publish does not merge: leave one out"),
    ],
)
def test_a_command_that_cannot_be_is_refused_before_anything_starts(
    tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "p.yml").write_text(FILE)
    (tmp_path / "j.py").touch()
    command = [sys.executable, str(ROOT / "run_workflow.py"), str(tmp_path / "p.yml"), *options]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and problem in ended.stderr


def test_the_commit_holds_them_beside_the_certificate() -> None:
    plain, stated = commit(request(pipeline(PublishOptions()))), commit(request())
    assert {key: value for key, value in stated.items() if key.startswith(METADATA)} == {
        "sluice.metadata.owner": "ana",
        "sluice.metadata.ticket": "F-1",
    }
    assert merge_message(STATED, RUN, ["t.x"]) == "Correct May"
    assert merge_message(PublishOptions(), RUN, ["t.x"]) == "Publish t.x from p (w)"
    assert not [key for key in plain if key.startswith(METADATA)]
    assert {key for key in stated if not key.startswith(METADATA)} == set(plain)


def test_no_key_replaces_a_property_of_the_certificate() -> None:
    names = [name.removeprefix("sluice.") for name in APPROVED]
    hostile = PublishOptions(metadata={key: "forged" for each in names for key in (each, f"sluice.{each}")})
    forged = commit(request(pipeline(hostile)))
    assert not unapproved_properties(forged, approved_properties(RUN, "h", REPORT.digest, [], []))
    assert [key for key, value in forged.items() if value == "forged" and not key.startswith(METADATA)] == []
    forged[APPROVED[0]] = "forged"
    assert unapproved_properties(forged, approved_properties(RUN, "h", REPORT.digest, [], [])) == [APPROVED[0]]


def test_a_release_and_a_requeue_carry_the_metadata_and_a_roll_back_carries_none() -> None:
    resumed = request(resume=Resume(branch="quarantine/p/d/r", run_id="q", base="b", head="h"))
    requeued = request(pipeline(write={"mode": "requeue", "statements": ["DELETE FROM t.x"]}))
    for each in (resumed, requeued):
        assert stated_options(each) == PublishOptions(metadata=STATED.metadata)
    restored = request(restore=Restore(runs=["q"], main_head="m", tables={"t.x": "b"}))
    assert stated_options(restored) == PublishOptions()
    audit = rollback_pipeline(request().pipeline, ["t.x"], ["t.x"])
    assert audit.publish == PublishOptions()
    recorded = commit(request())[ROLLBACK_PIPELINE]
    assert "Correct May" not in recorded and Pipeline.model_validate_json(recorded) == audit


def test_what_several_tables_may_be_published_one_by_one_for_is_kept() -> None:
    """A message at the start cancels nothing. A roll-back uses the pipeline's permission, or its own option."""
    partial = PublishOptions(message="Load", metadata={"owner": "ana"}, allow_partial=True)
    assert changed_options(partial, "Load again", []).allow_partial
    recorded = Pipeline.model_validate_json(commit(request(pipeline(partial)))[ROLLBACK_PIPELINE])
    assert recorded.publish == PublishOptions(allow_partial=True)
    assert rollback_pipeline(pipeline(), ["t.x"], ["t.x"], allow_partial=True).publish == recorded.publish
    restored = request(pipeline(partial), restore=Restore(runs=["q"], main_head="m", tables={"t.x": "b"}))
    assert stated_options(restored) == recorded.publish


def test_a_start_of_another_message_does_not_attach_to_the_run_under_way() -> None:
    assert _difference(request(), request()) == ""
    other = request(pipeline(STATED.model_copy(update={"message": "Correct June"})))
    assert _difference(request(), other) == "its merge commit has another message or other metadata"
    changed = request(pipeline(show_values=True))
    assert "another version of the pipeline" in _difference(request(), changed)
